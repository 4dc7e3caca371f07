"""Connect to brokers; when that fails, name cause and remedy.

May import `cluster`, `credential_files`, `logins` and `security`. Begin with `probe`; `causes` turns
errors of clients into causes, `outage` says once that Kafka cannot be used, and once that it can again,
`closing` stops a producer without a task left, `start_log` says what a start waits for, `requests` sends what
kafka-python has no method for, and `groups` holds what depends on the protocol of Kafka's consumer groups.
"""
