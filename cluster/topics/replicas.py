"""Find partitions that a failed broker has taken away, or that the next one would."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kafka import KafkaAdminClient

from deniable.cluster.finding import Finding
from deniable.cluster.topics.plan import SAFE_REPLICAS
from deniable.protocol.words import number_of

#: Kafka's own topics, without which no transaction ends and no group works.
INTERNAL = ("__transaction_state", "__consumer_offsets")


class _Partition(NamedTuple):
    topic: str
    number: int
    replicas: int
    in_sync: int
    is_led: bool


def replica_findings(admin: KafkaAdminClient, names: Sequence[str], brokers: int) -> list[Finding]:
    """Find partitions without a leader; warn of replicas that are out of sync, and of too few.

    Parameters
    ----------
    admin : connected.
    names : of topics; those that do not exist or that we may not see are left out.
    brokers : of the cluster; with three or more, three replicas are safe.
    """
    partitions = sorted(_partitions(admin.describe_topics([*names, *INTERNAL])))
    offline = [each for each in partitions if not each.is_led]
    lagging = [each for each in partitions if each.is_led and each.in_sync < each.replicas]
    found = []
    if offline:
        what = f"no leader of {_listed(offline)}: nothing is read or written there"
        found.append(Finding(what, "Start the brokers that have their replicas"))
    if lagging:
        what = f"replicas out of sync in {_listed(lagging)}"
        remedy = "A broker is down or behind: look at its log"
        found.append(Finding(what, remedy, is_warning=True))
    return found + _too_few(partitions, min(SAFE_REPLICAS, brokers))


def _partitions(described: Iterable[Mapping[str, Any]]) -> Iterable[_Partition]:
    for topic in described:
        for each in [] if topic["error_code"] else topic["partitions"]:
            replicas, in_sync = len(each["replica_nodes"]), len(each["isr_nodes"])
            yield _Partition(
                topic["name"], each["partition_index"], replicas, in_sync, each["leader_id"] >= 0
            )


def _too_few(partitions: Iterable[_Partition], enough: int) -> list[Finding]:
    """Return a warning for each number of replicas, of our topics and of Kafka's own."""
    least: dict[str, int] = {}
    for each in partitions:
        least[each.topic] = min(each.replicas, least.get(each.topic, each.replicas))
    alike: dict[tuple[str, int], list[str]] = {}
    for topic, replicas in sorted(least.items()):
        if replicas < enough:
            harm = "nothing is counted" if topic in INTERNAL else "so are acknowledged records"
            alike.setdefault((harm, replicas), []).append(topic)
    return [
        Finding(
            f"only {number_of(replicas, 'replica')} of {', '.join(topics)}, "
            f"where brokers could have {enough}: if {'it is' if replicas == 1 else 'they are'} lost, {harm}",
            f"Raise the number to {enough} with kafka-reassign-partitions.sh",
            is_warning=True,
        )
        for (harm, replicas), topics in alike.items()
    ]


def _listed(partitions: Sequence[_Partition]) -> str:
    """Return "3 partitions (d-counts 0, d-state 0 1)"."""
    named = [
        f"{topic} {' '.join(str(each.number) for each in group)}"
        for topic, group in groupby(partitions, key=lambda each: each.topic)
    ]
    return f"{number_of(len(partitions), 'partition')} ({', '.join(named)})"
