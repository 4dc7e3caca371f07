"""The names of the topics, and readers of them that belong to no consumer group.

May import nothing else of `aggregator`. Begin with `names`; `partition_reader` reads one partition up to its
end, `topic_reader` reads all partitions of a topic from a point in time.
"""
