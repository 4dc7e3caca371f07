"""Delivery to an edge over HTTP, for producers that reach no Kafka.

May import `agreement`, `cluster`, `credential_files`, `parameter_differences`, `publication`, `sender` and
`uploads`. Begin with `address` and `answers`, which are pure; `connection` is one
HTTP connection, `delivery` the threads that use several; `collection_list` and `agreement` compare a
producer's collections with the edge's.
"""
