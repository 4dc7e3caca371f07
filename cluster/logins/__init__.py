"""Logins at Kafka: a class for each mechanism, where its secrets come from, and what clients are handed.

May import `credential_files` and `loopback`. Begin with `mechanisms`; `secret_sources` reads a secret when it
is needed, `tokens` renews what `token_sources` gets, and `of_aiokafka` lets connections log in again.
"""
