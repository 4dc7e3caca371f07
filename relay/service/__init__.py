"""The relay as a process: it reads `uploads` in a consumer group, and writes packs to `reports`.

May import `acceptance`, `control`, `fold`, `keys`, `recovery` and `windows`. Begin with `service`.

service     the loop: poll, fold, send, commit
partition   one partition: its fold, and what is to be sent of its batches
opening     where a partition begins, from its commit and its log
pulse       which control records a relay appends, and when
following   the settings of the file, and those that may follow the log's
delivery    records that are sent until Kafka has them
group       the consumer: which partitions are ours, positions, commits
outcomes    what became of the uploads of each batch, for the topic `rejected-uploads`
metrics     what Prometheus sees; `definitions` names it
errors      why a relay ends
"""
