"""Reads estimates and windows from their topics, `read_committed`.

Rule 1: of a record only its head is parsed to decide whether it is wanted: provisional estimates outnumber
final ones. A head that is not as our workers write it is decoded in full.
Rule 2: records are converted between fetches, in the same thread. In another one, each read of the socket
would wait for the interpreter's lock.
"""

import re
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from deniable.analysis.sources.left_out import HeldSpan, joined_span
from deniable.analysis.sources.newest import NewestEstimates
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS, kept_since, records_since
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics
from deniable.protocol.wire import EARLY_SECONDS

FETCHES_BYTES = 16 << 20
HEAD = re.compile(
    rb'\{"version":1,"collection":"([ !#-\[\]-~]*)","fingerprint":"([0-9a-f]{16})",'
    rb'"window_start":([0-9]{1,12}),"window_end":([0-9]{1,12}),"revision":[0-9]{1,18},"final":(true|false),'
)


@dataclass
class EstimateFilter:
    """Which records of the topic are wanted, and how many are not.

    Parameters
    ----------
    name : of the collection.
    fingerprint : of its parameters, in hex; None for any.
    period : that contains the windows entirely.
    provisional : whether estimates that are not final are wanted.
    others : windows of the same name and period under other parameters, by fingerprint.
    foreign : records of the collection's key that are no estimates of this version.
    named : collections of the records, whatever their key.
    held : windows of the collection under these parameters among the records, in and out of the period.
    """

    name: str
    fingerprint: str | None
    period: Period
    provisional: bool = False
    others: dict[str, set[int]] = field(default_factory=dict)
    foreign: int = 0
    named: set[str] = field(default_factory=set)
    held: HeldSpan | None = None

    def __post_init__(self) -> None:
        self._name = self.name.encode()
        self._prefix = self._name + b"/"

    def wanted(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """Return the record's JSON if it is wanted."""
        if key is None or value is None or not key.startswith(self._prefix):
            return None
        head = HEAD.match(value)
        if head is None:
            return self._decoded(value)
        name, fingerprint, start, end, final = head.groups()
        self.named.add(name.decode())
        if name != self._name or not (self.provisional or final == b"true"):
            return None
        is_wanted = self._is_wanted(fingerprint.decode(), int(start), int(end), final == b"true")
        return value if is_wanted else None

    def _decoded(self, value: bytes) -> bytes | None:
        try:
            record: EstimateRecord = decode_estimate(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.foreign += 1
            return None
        self.named.add(record.collection)
        is_wanted = record.collection == self.name and self._is_wanted(
            record.fingerprint, record.window_start, record.window_end, record.final
        )
        return encode_estimate(record) if is_wanted else None

    def _is_wanted(self, fingerprint: str, start: int, end: int, final: bool) -> bool:
        is_ours = self.fingerprint in (None, fingerprint)
        if is_ours and (final or self.provisional):
            held = self.held
            if held is None or start < held.start or end > held.end:
                self.held = joined_span([held, HeldSpan(start, end, end - start)])
        if not (self.period.start <= start and end <= self.period.end and (final or self.provisional)):
            return False
        if not is_ours:
            self.others.setdefault(fingerprint, set()).add(start)
            return False
        return True


async def read_topic_estimates(
    cluster: Cluster, topics: Topics, wanted: EstimateFilter, since_ms: int | None = None
) -> NewestEstimates:
    """Read what is wanted of the topic `estimates`.

    Parameters
    ----------
    cluster, topics : of the deployment.
    wanted : gets the numbers of what is not.
    since_ms : first append time, unix milliseconds; None: the earliest at which a window of the period, or a
        report for it, can have been counted.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    keep_memory_of_fetches()
    newest = NewestEstimates()
    if since_ms is None:
        since_ms = max(0, (wanted.period.start - EARLY_SECONDS) * 1000 - CLOCKS_MILLISECONDS)
    found = records_since(cluster, topics.estimates, range(topics.partitions), since_ms)
    async with aclosing(found) as records:
        async for _, record in records:
            value = wanted.wanted(record.key, record.value)
            if value is not None and newest.add(value):
                newest.convert(newest.taken())
    newest.convert(newest.taken())
    return newest


def keep_memory_of_fetches() -> None:
    """Have glibc keep up to 32 MiB of freed memory for the next fetch; else each one waits for zeroed pages.

    Once an array is freed, it keeps twice as much: mallopt(3), M_MMAP_THRESHOLD. A process that has settings
    keeps them, and other C libraries ignore this.
    """
    bytearray(FETCHES_BYTES)


async def deleted_before(
    cluster: Cluster, topic: str, partitions: int, collection: Collection, period: Period, first: int | None
) -> int | None:
    """Return from when on a topic has all its records, unix seconds; None if the period lacks none of them.

    Parameters
    ----------
    cluster, topic, partitions : that was read.
    collection, period : of the windows.
    first : start of the first window that was found, unix seconds; None if none was.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    whole = period.whole_windows(collection.window_seconds)
    if period.start == 0 or (first is not None and first <= whole.start):
        return None
    kept_from = await kept_since(cluster, topic, range(partitions))
    return kept_from if kept_from is not None and period.start < kept_from else None


def filter_of(collection: Collection, period: Period, *, provisional: bool) -> EstimateFilter:
    """Return what is wanted of a collection of the file: estimates under its parameters."""
    return EstimateFilter(collection.name, f"{collection.fingerprint:016x}", period, provisional)
