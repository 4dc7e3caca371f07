"""Reading the final windows of a collection from the topic `windows`, each for itself."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

from aggregator.merge import WindowCounts
from aggregator.moments import Period
from aggregator.topics import Topics
from aggregator.window_reader import Joined, Place, Reading, windows_since
from estimators.collection import Collection
from producers.transport.cluster import Cluster

MOST_COUNTERS = 1 << 25  # of all windows together: 256 MiB


class EachWindow(Reading):
    """A reading that keeps the newest revision of each window."""

    def __init__(self, collection: Collection, period: Period) -> None:
        super().__init__(collection, period, set())
        self._kept: dict[int, WindowCounts] = {}

    def windows(self) -> dict[int, WindowCounts]:
        """Counts by start, unix seconds, ascending; without those whose newest revision lacks pages."""
        return {s: self._kept[s] for s in sorted(self._kept) if self._kept[s].packs >= self._newest[s]}

    def joined(self) -> Joined:
        """What was found; its counts, in which replaced revisions may be, are of no use."""
        windows = self.windows()
        reports = {start: counts.reports for start, counts in windows.items()}
        incomplete = sorted(self._newest.keys() - windows.keys())
        return replace(super().joined(), reports=reports, incomplete=incomplete)

    def _add(self, start: int, counts: WindowCounts, place: Place) -> None:
        super()._add(start, counts, place)
        if start not in self._kept or counts.packs >= self._kept[start].packs:
            self._kept[start] = counts


def check_room(collection: Collection, period: Period) -> None:
    """Raise ValueError if the windows of a period may hold more than MOST_COUNTERS."""
    most = max(1, MOST_COUNTERS // (collection.cohorts * collection.width))
    windows = period.windows(collection.window_seconds)
    if windows > most:
        raise ValueError(
            f"from and to must hold at most {most} windows of {collection.name}, got {windows}; give a "
            "shorter period"
        )


async def read_windows(
    cluster: Cluster, topics: Topics, collection: Collection, period: Period
) -> tuple[Mapping[int, WindowCounts], Joined]:
    """Counts of the collection's final windows that lie whole within a period, by start, and what was found.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    reading = EachWindow(collection, period)
    async with aclosing(windows_since(cluster, topics, period.start)) as records:
        async for partition, record in records:
            reading.take(partition, record)
    return reading.windows(), reading.joined()
