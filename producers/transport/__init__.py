"""How reports reach Kafka: addresses, security, connections, sending.

May import `concurrency`, `storage` and `metrics`. Begin with `cluster`, then `connection` and `sender`.
"""
