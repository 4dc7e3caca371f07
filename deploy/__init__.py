"""Commands and deployment.

May import `aggregator`, `analysis`, `cluster`, `config`, `edge`, `estimators`, `producers`, `protocol` and
`relay`. Begin with `cli/main.py`; each command is in the sub-package of what it works on.

cli             the command `deniable` itself: start, end, logs, shared options
offline         commands that use only files
broker          an embedded Kafka broker
cluster         an existing Kafka cluster: topics, permissions, connections, diagnosis
services        what runs all the time: workers, edge, relay
produce         commands of a producer
query           commands that read estimates and counts
backfill        `deniable backfill`: past events into exported files
start           `deniable init` and `deniable dev`
demo            `deniable demo`
monitoring      files for Prometheus and Grafana
"""
