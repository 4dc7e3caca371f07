"""Looks for changes of shares in every collection, from the topics `windows` and `estimates`.

Rule 1: windows that were final before this worker began are read from the topic `windows`, later ones come
with their estimates; both have the same figures. Nothing is stored: see `history.share_changes`.
Rule 2: estimating and detecting run in a thread, since they may take seconds after a start.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from aggregator.history.periods import Period
from aggregator.history.share_changes import EPOCH_WINDOWS, ChangeMonitor
from aggregator.history.window_reader import check_room, read_windows
from aggregator.history.window_shares import WindowShares, shares_of_counts, shares_of_record
from aggregator.metrics.definitions import CHANGE_WINDOWS, MOST_WATCHED
from aggregator.records.estimate import EstimateRecord
from aggregator.records.share_change import ShareChange
from aggregator.records.window_counts import WindowCounts
from aggregator.topics.names import Topics
from estimators.collection import Collection
from estimators.mechanisms.square_wave import SquareWave
from producers.transport.cluster import Cluster

LOOK_SECONDS = 1.0
EPOCHS = 3

log = structlog.get_logger()


class ChangeWatch:
    """The changes that were found lately.

    Parameters
    ----------
    collections : to look at; numbers and collections of more than MOST_WATCHED values are left out.
    show : called with a collection's name and its changes of the last CHANGE_WINDOWS windows, by time.
    """

    def __init__(
        self, collections: Iterable[Collection], show: Callable[[str, Sequence[ShareChange]], None]
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
        shares = shares_of_record(record) if record.fingerprint in self._collections else None
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
                self._show(collection.name, [each for each in changes if each.found > since])

    async def _read(self, cluster: Cluster, topics: Topics, fingerprint: str, collection: Collection) -> None:
        seconds, now = collection.window_seconds * EPOCH_WINDOWS, int(time.time())
        period = Period(max(0, (now // seconds - EPOCHS + 1) * seconds), now + 1)
        try:
            check_room(collection, period)
        except ValueError:
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
    """Whether a worker looks for changes of its shares."""
    return 1 <= collection.entries <= MOST_WATCHED and not isinstance(collection.mechanism, SquareWave)


def _estimated(collection: Collection, start: int, counts: WindowCounts) -> WindowShares | None:
    try:
        return shares_of_counts(collection, start, counts)
    except (ValueError, ArithmeticError):  # counted by deniable_estimate_failures_total
        return None


def _updated(monitor: ChangeMonitor, new: Iterable[WindowShares]) -> list[ShareChange]:
    for each in new:
        monitor.add(each)
    return monitor.update()
