"""Limits of topics' settings; beyond them a deployment works only at first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deniable.cluster.finding import Finding
from deniable.cluster.topics.plan import (
    DAY_MILLISECONDS,
    RECORD_BYTES,
    SAFE_REPLICAS,
    WEEK_MILLISECONDS,
    TopicPlan,
)
from deniable.estimators.collection import Collection
from deniable.protocol.uploads.frame import RESTATE_SECONDS
from deniable.protocol.wire import EARLY_SECONDS

LEAST_COMPACTION_MILLISECONDS = 60_000
FOREVER = -1
#: What `uploads` keeps beyond window and grace: uploads come early, and relays begin to read before a window
#: with settings that they restate.
UPLOADS_SPARE_SECONDS = EARLY_SECONDS + 3 * int(RESTATE_SECONDS)

Settings = Mapping[str, str]


class Kept(NamedTuple):
    """How long a topic must keep records.

    Parameters
    ----------
    longest : the collection whose records it must keep longest.
    spare_seconds : beyond its window and grace.
    usual_milliseconds : what to set.
    """

    longest: Collection
    spare_seconds: int = 0
    usual_milliseconds: int = WEEK_MILLISECONDS

    @property
    def least_milliseconds(self) -> int:
        """The shortest retention."""
        return 1000 * (self.longest.window_seconds + self.longest.grace_seconds + self.spare_seconds)


class Limit(NamedTuple):
    """Least or greatest value of a setting, and the reason."""

    key: str
    least: int | None
    most: int | None
    why: str

    def finding(self, settings: Settings) -> tuple[str, int] | None:
        """Return what is wrong and the right value; None within the limit."""
        value = int(settings[self.key])
        if self.least is not None and value < self.least:
            return f"must be at least {self.least}, got {value} ({self.why})", self.least
        if self.most is not None and value > self.most:
            return f"must be at most {self.most}, got {value} ({self.why})", self.most
        return None


ALL = (Limit("max.message.bytes", RECORD_BYTES, None, "packs and rows may be as large"),)
COMPACTED = (
    Limit(
        "min.compaction.lag.ms",
        None,
        DAY_MILLISECONDS,
        "until then a worker that takes over a partition reads every row ever written",
    ),
    Limit(
        "max.compaction.lag.ms",
        LEAST_COMPACTION_MILLISECONDS,
        None,
        "it also ends segments, so each checkpoint would begin one with separate files",
    ),
    Limit(
        "delete.retention.ms",
        DAY_MILLISECONDS,
        None,
        "a transaction's marker must outlast producer.id.expiration.ms of the brokers, or clients cannot "
        "read it",
    ),
)


def limit_findings(
    planned: Sequence[TopicPlan],
    settings: Mapping[str, Settings],
    replicas: Mapping[str, int],
    kept: Mapping[str, Kept],
    change: str,
) -> list[Finding]:
    """Find settings beyond a limit, each with its remedy.

    Parameters
    ----------
    planned : topics that exist.
    settings : by topic.
    replicas : of each partition, by topic.
    kept : how long topics that have the reports must keep them, by topic.
    change : the command that changes settings, up to its --topic.
    """
    found = []
    for topic in planned:
        wrong_settings = [*_of_topic(topic, settings[topic.name], replicas[topic.name])]
        if topic.name in kept:
            wrong_settings += _of_retention(int(settings[topic.name]["retention.ms"]), kept[topic.name])
        found += [
            Finding(
                f"topic {topic.name}: {key} {wrong}",
                f"{change} --topic {topic.name} --add-config {key}={value}",
            )
            for key, wrong, value in wrong_settings
        ]
    return found


def _of_topic(topic: TopicPlan, settings: Settings, replicas: int) -> Iterator[tuple[str, str, int]]:
    is_compacted = topic.settings["cleanup.policy"] == "compact"
    for limit in (*ALL, *(COMPACTED if is_compacted else ())):
        if wrong := limit.finding(settings):
            yield limit.key, *wrong
    key, in_sync = "min.insync.replicas", int(settings["min.insync.replicas"])
    if in_sync > replicas:
        problem = (
            f"must be at most {replicas}, got {in_sync} (more than there are replicas: nothing is written)"
        )
        yield key, problem, max(1, replicas - 1)
    elif replicas >= SAFE_REPLICAS and in_sync < 2:
        yield key, "must be at least 2, got 1 (a failing broker may lose acknowledged records)", 2


def _of_retention(retention_ms: int, kept: Kept) -> Iterator[tuple[str, str, int]]:
    longest, spare, least = kept.longest, kept.spare_seconds, kept.least_milliseconds
    if FOREVER < retention_ms < least:
        why = f"window_seconds and grace_seconds of {longest.name}{f' and {spare} s' if spare else ''}"
        why += "; records deleted earlier may be uncounted"
        said = f"must be at least {least}, got {retention_ms} ({why})"
        yield "retention.ms", said, max(kept.usual_milliseconds, least)
