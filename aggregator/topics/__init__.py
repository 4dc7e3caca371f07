"""What workers write: transactions of many records, markers, and the topic `collections`.

May import no sibling. Begin with `transaction_batches`, which sends many records at once; `partitioner` finds
the partition of a key, `collection_publisher` publishes what is counted, `markers` closes idle partitions,
`foreign_records` counts what is not ours.
"""
