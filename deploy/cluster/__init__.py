"""An existing Kafka cluster: topics, permissions, connections, diagnosis.

May import `config` and `cli`, as may its sub-packages: `connection` opens connections and explains why they
fail, `permissions` has roles and ACLs, `topics` creates and checks topics, `doctor` examines all of it in
order. Begin with `topics`.
"""
