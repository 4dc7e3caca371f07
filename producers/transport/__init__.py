"""How reports reach Kafka: addresses, security, connections, sending.

May import `errors` and `concurrency`. Begin with `cluster`, then `connection` and `sender`;
`client_log` keeps kafka-python out of the application's log.
"""
