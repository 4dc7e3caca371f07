"""Readers without a consumer group.

May import `cluster`, `connection` and `existing_topics`. Begin with `partition_reader`, which reads one
partition to its end; `topic_reader` reads all of them from a point in time, `publication_reader` what workers
publish; `consumer` creates their consumers.
"""
