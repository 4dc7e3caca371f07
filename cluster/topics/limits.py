"""Limits of topics' settings; beyond them a deployment works only at first, or until something fails."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deniable.cluster.finding import Finding
from deniable.cluster.topics.plan import (
    DAY_MILLISECONDS,
    FOREVER,
    NEVER,
    RECORD_BYTES,
    SAFE_REPLICAS,
    UNCLEAN,
    WEEK_MILLISECONDS,
    TopicPlan,
)
from deniable.estimators.collection import Collection
from deniable.protocol.uploads.frame import RESTATE_SECONDS
from deniable.protocol.wire import EARLY_SECONDS

LEAST_COMPACTION_MILLISECONDS = 60_000
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
        """Return what is wrong and the right value; None within the limit, or without this setting."""
        if self.key not in settings:
            return None
        value = int(settings[self.key])
        if self.least is not None and value < self.least:
            return f"must be at least {self.least}, got {value} ({self.why})", self.least
        if self.most is not None and value > self.most:
            return f"must be at most {self.most}, got {value} ({self.why})", self.most
        return None


class Choice(NamedTuple):
    """Values of a setting that lose nothing, the one to set first, and the reason."""

    key: str
    values: tuple[str, ...]
    why: str

    def finding(self, settings: Settings) -> tuple[str, str] | None:
        """Return what is wrong and the right value; None if it is one of the values, or older than Kafka."""
        value = settings.get(self.key, self.values[0])
        if value in self.values:
            return None
        return f"must be {' or '.join(self.values)}, got {value} ({self.why})", self.values[0]


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
#: What other writers compress reaches readers as they sent it, if brokers leave compression to them.
SOURCES = (
    Choice("compression.type", ("uncompressed",), "one sender's codec may be unknown to workers and relays"),
    Choice("retention.bytes", (str(FOREVER),), "records deleted by size may be uncounted"),
)
OTHERS = (Choice("compression.type", ("uncompressed", "producer"), "a reader may not know the codec"),)
ANY = (
    Choice(UNCLEAN, ("false",), "an election may lose acknowledged records"),
    Choice("message.timestamp.before.max.ms", (str(NEVER),), "records about earlier hours are refused"),
)


def limit_findings(
    planned: Sequence[TopicPlan],
    settings: Mapping[str, Settings],
    replicas: Mapping[str, int],
    kept: Mapping[str, Kept],
    change: str,
) -> list[Finding]:
    """Find settings beyond a limit, each with its remedy; a warning if all is well until something fails.

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
        name, set_ = topic.name, settings[topic.name]
        wrong_settings = [*_of_topic(topic, set_)]
        if topic.name in kept:
            wrong_settings += _of_retention(int(set_.get("retention.ms", FOREVER)), kept[topic.name])
        found += [
            Finding(f"topic {name}: {key} {wrong}", f"{change} --topic {name} --add-config {key}={value}")
            for key, wrong, value in wrong_settings
        ]
        found += _of_in_sync(name, int(set_.get("min.insync.replicas", 1)), replicas[name], change)
        found += [
            Finding(
                f"topic {name}: {choice.key} {wrong[0]}",
                f"{change} --topic {name} --add-config {choice.key}={wrong[1]}",
                is_warning=True,
            )
            for choice in _choices(topic)
            if (wrong := choice.finding(set_))
        ]
    return found


def _choices(topic: TopicPlan) -> Iterator[Choice]:
    """Leave out what the topic's settings leave to the brokers, and what programs refuse."""
    for choice in (*(SOURCES if topic.is_source else OTHERS), *ANY):
        if choice.key in topic.settings and choice.key not in topic.required:
            yield choice


def _of_topic(topic: TopicPlan, settings: Settings) -> Iterator[tuple[str, str, int]]:
    is_compacted = topic.settings["cleanup.policy"] == "compact"
    for limit in (*ALL, *(COMPACTED if is_compacted else ())):
        if wrong := limit.finding(settings):
            yield limit.key, *wrong


def _of_in_sync(name: str, in_sync: int, replicas: int, change: str) -> Iterator[Finding]:
    """Find too few or too many replicas that must be in sync; no remedy lowers them to one."""
    what = f"topic {name}: min.insync.replicas must be"
    set_to = f"{change} --topic {name} --add-config min.insync.replicas="
    if in_sync > replicas:
        said = f"{what} at most {replicas}, got {in_sync} (more than there are replicas: nothing is written)"
        more = f"Raise its replicas to {max(SAFE_REPLICAS, in_sync)} with kafka-reassign-partitions.sh"
        yield Finding(said, f"{set_to}{replicas - 1}" if replicas >= SAFE_REPLICAS else more)
    elif replicas >= SAFE_REPLICAS and in_sync < 2:
        said = f"{what} at least 2, got 1 (a failing broker may lose acknowledged records)"
        yield Finding(said, f"{set_to}2")


def _of_retention(retention_ms: int, kept: Kept) -> Iterator[tuple[str, str, int]]:
    longest, spare, least = kept.longest, kept.spare_seconds, kept.least_milliseconds
    if FOREVER < retention_ms < least:
        why = f"window_seconds and grace_seconds of {longest.name}{f' and {spare} s' if spare else ''}"
        why += "; records deleted earlier may be uncounted"
        said = f"must be at least {least}, got {retention_ms} ({why})"
        yield "retention.ms", said, max(kept.usual_milliseconds, least)
