"""An existing Kafka cluster: topics, permissions, connections, diagnosis.

May import `cli`, as may its sub-packages: `permissions` has ACLs and quotas, `topics` creates and checks
topics, `doctor` examines all of it in order. Begin with `topics`.
"""
