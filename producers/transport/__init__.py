"""How reports reach Kafka or an edge.

May import `errors`, `concurrency` and `metrics`. Begin with `connection` and `sender`; `agreement` compares
what workers publish with a producer's parameters; `client_log` keeps kafka-python out of the application's
log; `edge` is how reports reach an edge; `console` prints them instead.
"""
