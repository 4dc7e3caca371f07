"""The way to Kafka, for every program: addresses, logins, connections, reading, topics and permissions.

May import `estimators` and `protocol`. Begin with `cluster`, how to connect; `security` and
`credential_files` are TLS and logins.

logins        mechanisms, secrets and tokens
connection    opens connections, and says why they fail
reading       topics and partitions from an offset or a point in time, without a consumer group
topics        which topics there are, and what does not fit
permissions   what each role may do
finding       what is wrong, and the remedy

existing_topics keeps clients from creating topics.
"""
