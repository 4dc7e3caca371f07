"""The permissions of each role in Kafka, as ACLs and quotas.

May import `finding` and `connection`. Begin with `roles`.
"""
