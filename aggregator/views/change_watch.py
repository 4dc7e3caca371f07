"""Looks for changes of shares and means in every collection, from the topics `windows` and `estimates`.

Rule 1: windows that were final before this worker began are read from the topic `windows`, later ones come
with their estimates; both have the same figures. Nothing is stored: see `history.share_changes`.
Rule 2: estimating and detecting run in a thread, since they may take seconds after a start.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import structlog

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.share_changes import EPOCH_WINDOWS, ChangeMonitor
from deniable.aggregator.history.window_reader import most_windows, read_windows
from deniable.aggregator.history.window_shares import WindowShares, shares_of_counts, shares_of_record
from deniable.aggregator.metrics.definitions import CHANGE_WINDOWS, MOST_WATCHED
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.cluster.cluster import Cluster
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

LOOK_SECONDS = 1.0
EPOCHS = 3

log = structlog.get_logger()


class ChangeWatch:
    """The changes that were found lately.

    Parameters
    ----------
    collections : to look at: numbers, and those of at most MOST_WATCHED values, except those that are grown,
        whose lists change.
    show : called with a collection's name, its changes of the last CHANGE_WINDOWS windows, by time, and the
        unbiased figures of the newest window by label.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        show: Callable[[str, Sequence[ShareChange], Mapping[str, float]], None],
    ) -> None:
        self._collections = {f"{each.fingerprint:016x}": each for each in collections if is_watched(each)}
        self._monitors = {
            name: ChangeMonitor(each, epochs=EPOCHS) for name, each in self._collections.items()
        }
        self._new: dict[str, list[WindowShares]] = {name: [] for name in self._collections}
        self._newest = dict.fromkeys(self._collections, 0)
        self._show = show

    def take(self, record: EstimateRecord) -> None:
        """Add an estimate of the topic; only final ones of watched collections count."""
        collection = self._collections.get(record.fingerprint)
        shares = shares_of_record(collection, record) if collection is not None else None
        if shares is not None:
            self._new[record.fingerprint].append(shares)

    async def run(self, cluster: Cluster, topics: Topics) -> None:
        """Read earlier windows, then look at new ones until cancelled; KafkaError, TimeoutError."""
        for fingerprint, collection in self._collections.items():
            await self._read(cluster, topics, fingerprint, collection)
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look for changes where windows are new, and show them."""
        for fingerprint, monitor in self._monitors.items():
            new, self._new[fingerprint] = self._new[fingerprint], []
            if new:
                changes = await asyncio.to_thread(_updated, monitor, new)
                collection = self._collections[fingerprint]
                self._newest[fingerprint] = max(self._newest[fingerprint], *(each.start for each in new))
                since = self._newest[fingerprint] - CHANGE_WINDOWS * collection.window_seconds
                lately = [each for each in changes if each.found > since]
                self._show(collection.name, lately, monitor.newest())

    async def _read(self, cluster: Cluster, topics: Topics, fingerprint: str, collection: Collection) -> None:
        seconds, now = collection.window_seconds * EPOCH_WINDOWS, int(time.time())
        period = Period(max(0, (now // seconds - EPOCHS + 1) * seconds), now + 1)
        if period.windows(collection.window_seconds) > most_windows(collection):
            log.warning(
                "changes are looked for in new windows only",
                reason=f"{collection.name}: too many counters for {EPOCHS * EPOCH_WINDOWS} former windows",
                remedy="none needed; after a restart, alarms begin anew",
            )
            return
        counts, _ = await read_windows(cluster, topics, collection, period)
        for start, each in counts.items():
            shares = await asyncio.to_thread(_estimated, collection, start, each)
            if shares is not None:
                self._new[fingerprint].insert(0, shares)  # a record that came meanwhile replaces it


def is_watched(collection: Collection) -> bool:
    """Whether a worker looks for changes of its shares, or of its mean."""
    if collection.number is not None:
        return True
    return collection.growth is None and 1 <= collection.entries <= MOST_WATCHED


class Unwatched(NamedTuple):
    """Why the changes of a collection are not looked for, or only in part, and what finds them instead.

    Parameters
    ----------
    reason : "values", too many of them; "growth", its list changes; "counters", so many that a worker begins
        anew after a restart.
    use : the command that finds changes of the past: `changes`, `compare`, or without candidates `decode
        --grow` for each of two periods, "grow".
    """

    reason: Literal["values", "growth", "counters"]
    use: Literal["changes", "compare", "grow"]


def unwatched(collection: Collection) -> Unwatched | None:
    """Return why changes are not, or not fully, looked for; None if they are, or if nothing is listed."""
    if collection.number is not None or not (collection.entries or collection.growth):
        return None
    most = most_windows(collection)
    use: Literal["changes", "compare"] = "compare" if most < 2 * EPOCH_WINDOWS else "changes"
    if collection.growth is not None:
        return Unwatched("growth", use if collection.entries else "grow")
    if collection.entries > MOST_WATCHED:
        return Unwatched("values", use)
    return Unwatched("counters", use) if most < EPOCHS * EPOCH_WINDOWS else None


def _estimated(collection: Collection, start: int, counts: WindowCounts) -> WindowShares | None:
    try:
        return shares_of_counts(collection, start, counts)
    except (ValueError, ArithmeticError):  # counted by deniable_estimate_failures_total
        return None


def _updated(monitor: ChangeMonitor, new: Iterable[WindowShares]) -> list[ShareChange]:
    for each in new:
        monitor.add(each)
    return monitor.update()
