"""Connect to brokers; when that fails, name cause and remedy.

May import `cluster`, `credential_files` and `security`. Begin with `probe`; `causes` turns
errors of clients into causes, `outage` says once that Kafka cannot be used, and once that it can again,
and `closing` stops a producer without a task left.
"""
