"""Settings of topics that a deployment can bear within limits; beyond them it works at first alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deploy.cluster.finding import Finding
from deploy.cluster.topics.plan import (
    DAY_MILLISECONDS,
    RECORD_BYTES,
    SAFE_REPLICAS,
    WEEK_MILLISECONDS,
    TopicPlan,
)
from estimators.collection import Collection

LEAST_COMPACTION_MILLISECONDS = 60_000
FOREVER = -1

Settings = Mapping[str, str]


class Limit(NamedTuple):
    """Least or greatest number that a setting may have, and why."""

    key: str
    least: int | None
    most: int | None
    why: str

    def finding(self, settings: Settings) -> tuple[str, int] | None:
        """What is wrong, and what it should be; None when it is within."""
        value = int(settings[self.key])
        if self.least is not None and value < self.least:
            return f"must be at least {self.least}, got {value} ({self.why})", self.least
        if self.most is not None and value > self.most:
            return f"must be at most {self.most}, got {value} ({self.why})", self.most
        return None


ALL = (Limit("max.message.bytes", RECORD_BYTES, None, "packs and rows are up to as large"),)
COMPACTED = (
    Limit(
        "min.compaction.lag.ms",
        None,
        DAY_MILLISECONDS,
        "until then every row that was ever written is read whenever a worker takes a partition over",
    ),
    Limit(
        "max.compaction.lag.ms",
        LEAST_COMPACTION_MILLISECONDS,
        None,
        "it also ends segments: each checkpoint would begin one, with files of its own",
    ),
    Limit(
        "delete.retention.ms",
        DAY_MILLISECONDS,
        None,
        "the marker of a transaction must outlast producer.id.expiration.ms of the brokers, or clients "
        "cannot read it",
    ),
)


def limit_findings(
    planned: Sequence[TopicPlan],
    settings: Mapping[str, Settings],
    replicas: Mapping[str, int],
    longest: tuple[str, Collection] | None,
    change: str,
) -> list[Finding]:
    """Each setting that is beyond a limit, with its remedy.

    Parameters
    ----------
    planned : topics that are there.
    settings : of each, by its name.
    replicas : of each, by its name: how many of each partition.
    longest : the topic of reports, and the collection whose reports it must keep longest.
    change : the command that changes settings, up to its --topic.
    """
    found = []
    for topic in planned:
        told = [*_of_topic(topic, settings[topic.name], replicas[topic.name])]
        if longest is not None and topic.name == longest[0]:
            told += _of_retention(int(settings[topic.name]["retention.ms"]), longest[1])
        found += [
            Finding(
                f"topic {topic.name}: {key} {wrong}",
                f"{change} --topic {topic.name} --add-config {key}={value}",
            )
            for key, wrong, value in told
        ]
    return found


def _of_topic(topic: TopicPlan, settings: Settings, replicas: int) -> Iterator[tuple[str, str, int]]:
    is_compacted = topic.settings["cleanup.policy"] == "compact"
    for limit in (*ALL, *(COMPACTED if is_compacted else ())):
        if wrong := limit.finding(settings):
            yield limit.key, *wrong
    key, in_sync = "min.insync.replicas", int(settings["min.insync.replicas"])
    if in_sync > replicas:
        said = f"must be at most {replicas}, got {in_sync} (there are no more replicas: nothing is written)"
        yield key, said, max(1, replicas - 1)
    elif replicas >= SAFE_REPLICAS and in_sync < 2:
        yield key, "must be at least 2, got 1 (a broker that fails may take acknowledged records with it)", 2


def _of_retention(retention_ms: int, longest: Collection) -> Iterator[tuple[str, str, int]]:
    least = 1000 * (longest.window_seconds + longest.grace_seconds)
    if FOREVER < retention_ms < least:
        why = f"window_seconds and grace_seconds of {longest.name}; what is deleted earlier may be uncounted"
        yield "retention.ms", f"must be at least {least}, got {retention_ms} ({why})", WEEK_MILLISECONDS
