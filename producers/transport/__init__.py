"""How reports reach Kafka: addresses, security, connections, sending; what workers publish for producers.

May import `errors`, `wire` and `concurrency`. Begin with `cluster`, then `connection` and `sender`;
`publication` is what workers publish about collections, and `agreement` compares it with a producer's;
`client_log` keeps kafka-python out of the application's log; `uploads` is what a device sends to an edge;
`id_set` is where receivers look up which ids they have seen.
"""
