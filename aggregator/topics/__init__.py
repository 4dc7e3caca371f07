"""What workers write: transactions of many records, markers, and the topic `collections`.

May import `ledger`. Begin with `transaction_batches`, which sends many records at once; `partitioner` finds
the partition of a key, `collection_publisher` publishes what is counted, `markers` closes idle partitions,
`relays` waits for relays, `foreign_records` counts what is not ours.
"""
