"""How reports reach Kafka: addresses, security, connections, sending.

May import `errors` and `concurrency`. Begin with `cluster`, then `connection` and `sender`.
"""
