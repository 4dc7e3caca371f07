"""Names of the topics, readers without a consumer group, and the writer of `collections`.

May import no sibling. Begin with `names`; `consumer` creates the consumers,
`partition_reader` reads one partition to its end, `topic_reader` all partitions from a point in time,
`partitioner` finds the partition of a key; `transaction_batches` sends many
records at once; `collection_publisher` publishes what is counted.
"""
