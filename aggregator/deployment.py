"""What a worker works on: brokers, topics, the log's identity, the collection file."""

from collections.abc import Mapping
from typing import NamedTuple

from aggregator.rows import Genesis
from aggregator.topics import Topics
from estimators.collection import Collection


class Deployment(NamedTuple):
    """All that the aggregator needs to know.

    Parameters
    ----------
    bootstrap_servers : "host:port", or several with commas.
    topics : names of the topics.
    log : identity of the topic `reports` as the broker tells it now.
    collections : of the collection file, by fingerprint.
    revision : of the collection file.
    """

    bootstrap_servers: str
    topics: Topics
    log: Genesis
    collections: Mapping[int, Collection]
    revision: int

    def home(self, partition: int) -> dict[int, Collection]:
        """Collections, by fingerprint, whose counts lie in this partition: its owner estimates them."""
        return {
            fingerprint: collection
            for fingerprint, collection in self.collections.items()
            if self.topics.counts_partition(fingerprint) == partition
        }
