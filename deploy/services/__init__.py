"""What runs for as long as a deployment does: workers, the edge that devices reach, and the relay.

May import `cli` and `cluster`. Begin with `aggregate`.

edge            the command that runs an edge
aggregate       commands of the aggregator: run workers, check readiness, replay, retire
relay           `deniable relay`
kafka_wait      waits for Kafka at the start
open_files      raises the limit of a worker
reload          takes up a changed collection file
metrics_server  metrics and health of processes without a web server
"""
