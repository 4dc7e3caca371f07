"""The permissions of each role in Kafka.

May import `cluster`, `connection` and `finding`. Begin with `roles`; `findings` says which are missing.
"""
