"""Choose how many replicas new topics get, and refuse if nobody could write to them.

Rule: what a cluster would do is asked by a creation that it only validates, so nothing is left behind.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import InvalidReplicationFactorError, KafkaError

from deniable.cluster.finding import Finding
from deniable.cluster.topics.plan import SAFE_REPLICAS, TopicPlan

CLUSTERS_OWN = -1
IN_SYNC = "min.insync.replicas"


class Replication(NamedTuple):
    """How new topics are replicated.

    Parameters
    ----------
    factor : to create topics with; CLUSTERS_OWN leaves it to the cluster.
    replicas : that each partition will have, >= 1.
    in_sync : min.insync.replicas of a topic that sets none, >= 1.
    brokers : of the cluster, those that are down included.
    """

    factor: int
    replicas: int
    in_sync: int
    brokers: int

    def finding(self) -> Finding | None:
        """Return why topics could not be written, and what raises replication; None if they could."""
        if self.in_sync <= self.replicas:
            return None
        what = (
            f"topics with {self.replicas} replica{'s' * (self.replicas != 1)} could not be written: brokers "
            f"accept a record once {self.in_sync} replicas have it ({IN_SYNC}), so none was created"
        )
        if self.brokers < self.in_sync:
            only = f"there {'is' if self.brokers == 1 else 'are'} only {self.brokers}"
            return Finding(what, f"Start {max(SAFE_REPLICAS, self.in_sync)} brokers: {only}")
        enough = min(self.brokers, max(SAFE_REPLICAS, self.in_sync))
        return Finding(what, f"set kafka.replication_factor: {enough} in the collection file")


def replication_of(admin: KafkaAdminClient, topic: TopicPlan, factor: int | None) -> Replication:
    """Return the replication of new topics.

    Without a number, three replicas, or as many as there are brokers; the cluster's own number if that is at
    least as many, or if the cluster takes no other.

    Parameters
    ----------
    admin : connected.
    topic : one that is to be created.
    factor : kafka.replication_factor; None if the file has none.
    """
    present = admin.describe_cluster()["brokers"]
    enough = min(SAFE_REPLICAS, len(present))
    chosen = CLUSTERS_OWN if factor is None else factor
    answer = _validated(admin, topic, chosen)
    if chosen == CLUSTERS_OWN and not answer.is_impossible and (answer.replicas or 0) < enough:
        more = _validated(admin, topic, enough)
        if not more.error:
            answer, chosen = more, enough
    replicas = answer.replicas or (enough if chosen == CLUSTERS_OWN else chosen)
    asked = [each["broker_id"] for each in present if not each.get("is_fenced")]
    in_sync = max(answer.in_sync, _in_sync_of_brokers(admin, asked))
    return Replication(chosen, replicas, in_sync, len(present))


class _Answer(NamedTuple):
    """What the cluster would create. `replicas` is None if we may not see it, or with an error."""

    error: int
    replicas: int | None
    in_sync: int

    @property
    def is_impossible(self) -> bool:
        """Whether the cluster's own number is more than there are brokers."""
        return bool(self.error == InvalidReplicationFactorError.errno)


def _validated(admin: KafkaAdminClient, topic: TopicPlan, factor: int) -> _Answer:
    wanted = {topic.name: {"num_partitions": topic.partitions, "replication_factor": factor}}
    (answer,) = admin.create_topics(wanted, validate_only=True, raise_errors=False)["topics"]
    seen, settings = answer.get("replication_factor", -1), answer.get("configs") or {}
    in_sync = int(settings[IN_SYNC]["value"]) if IN_SYNC in settings else 1
    return _Answer(answer["error_code"], seen if seen > 0 else None, in_sync)


def _in_sync_of_brokers(admin: KafkaAdminClient, brokers: Iterable[int]) -> int:
    """Return the largest setting of brokers that let us see it, 1 if none does.

    A controller that is no broker answers a validation with a setting of its own.
    """
    resources = [ConfigResource(ConfigResourceType.BROKER, str(each)) for each in brokers]
    try:
        described = admin.describe_configs(resources, config_filter="all").get("broker", {})
    except KafkaError:
        return 1
    return max((int(each[IN_SYNC]["value"]) for each in described.values() if IN_SYNC in each), default=1)
