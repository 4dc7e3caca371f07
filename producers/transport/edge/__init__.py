"""Delivery to an edge over HTTP, for producers that reach no Kafka.

May import `agreement`, `packs` and `parameter_differences`. Begin with `answers`, which is pure;
`connection` is one HTTP connection, `delivery` the threads that use several; `collection_list` and
`agreement` compare a producer's collections with the edge's.
"""
