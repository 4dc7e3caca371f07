"""The partition that Kafka's default partitioner gives to a key."""

from aiokafka.partitioner import murmur2


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition, in [0, partitions)."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)
