"""Speed of devices and of what they reach: the browser client, the edge and the relay.

May import `aggregator` and `sections`. Begin with `edge`; `load` asks servers, `plain_handler` is compared
with an edge.
"""
