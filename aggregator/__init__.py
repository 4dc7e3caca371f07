"""From bytes to exact counts to estimates.

May import `cluster`, `estimators` and `protocol`. Begin with `worker.py`, which puts a worker together; the
exact counts are in `ledger`.

ledger          the counts of one partition, as a pure fold over its records
topics          transactions of many records, what is published about collections
deployment      what a worker serves: brokers, topics, collections
records         the records that leave: estimates and final windows
metrics         what Prometheus reads
estimation      from the counts of all partitions to an estimate of each window
partition       one owned partition: fetch, count, store exactly once
history         answers over many final windows
views           the latest estimates in memory
maintenance     what an operator does to stored counts
web             live page, JSON API, metrics and probes
"""
