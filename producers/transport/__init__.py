"""How reports reach Kafka or an edge: addresses, connections, sending; what workers publish.

May import `errors`, `wire`, `concurrency` and `metrics`. Begin with `cluster`, then `connection` and
`sender`; `publication` is what workers publish about collections, and `agreement` compares it with a
producer's; `client_log` keeps kafka-python out of the application's log; `uploads` is what a device sends to
an edge, and `edge` is how a producer does that.
"""
