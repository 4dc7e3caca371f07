"""What each role may do in Kafka, as ACLs and quotas.

May import `connection`. Begin with `roles`.
"""
