"""The permissions of each role in Kafka, as ACLs and quotas.

May import `connection`. Begin with `roles`.
"""
