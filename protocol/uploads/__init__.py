"""What a device sends to an edge, and what an edge writes to the topic `uploads`.

May import `wire`. Begin with `upload`, the bytes that leave a device; `frame` puts many uploads into one
Kafka record; `id_set` is where receivers look up which ids they have seen, `signed_list` the form of the list
that devices fetch, `relay_position` how far relays have come.
"""
