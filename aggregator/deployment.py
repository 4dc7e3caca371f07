"""What a worker serves: brokers, topics, the log's identity, the collection file."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from deniable.aggregator.ledger.row_values import Genesis
from deniable.cluster.cluster import Cluster
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics


class ClientLimits(NamedTuple):
    """What one client may send to a collection. Producers enforce it; the page shows it.

    Parameters
    ----------
    per_window : reports, >= 1.
    budget : epsilon, delta and seconds of a period; None for no budget.
    per_period : returns the reports that the budget allows, None for any number; may compute for seconds.
    changes : how often a client's reports show another hash bucket, at most; None for any number, and for
        mechanisms other than longitudinal local hashing.
    values : what `per_period` holds for: `unchanged`, while a client's value stays the same, or `any`.
    any_epsilon : bound on all reports of a client whatever its values do, if it is known when they change,
        nats; None for no bound.
    """

    per_window: int
    budget: tuple[float, float, int] | None
    per_period: Callable[[], int | None]
    changes: int | None = None
    values: str = "any"
    any_epsilon: float | None = None


class Deployment(NamedTuple):
    """Everything the aggregator needs to know.

    Parameters
    ----------
    cluster : which Kafka.
    topics : names of the topics.
    log : current identity of the topic `reports`, from the broker.
    collections : of the collection file, by fingerprint.
    revision : of the collection file.
    limits : of the clients, by the collection's name.
    checkpoint_seconds : between two transactions of a partition with new counts, at least.
    relay_wait_seconds : how long windows wait for relays after their grace, at most; 0 if they do not.
    """

    cluster: Cluster
    topics: Topics
    log: Genesis
    collections: Mapping[int, Collection]
    revision: int
    limits: Mapping[str, ClientLimits] = MappingProxyType({})
    checkpoint_seconds: float = 0.25
    relay_wait_seconds: int = 0

    def home(self, partition: int) -> dict[int, Collection]:
        """Collections, by fingerprint, whose counts are in this partition: its owner estimates them."""
        return {
            fingerprint: collection
            for fingerprint, collection in self.collections.items()
            if self.topics.counts_partition(fingerprint) == partition
        }
