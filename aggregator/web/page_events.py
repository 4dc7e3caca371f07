"""What the live page is told: collections, limits, estimates, the history of windows, and how the worker is.

Rule 1: `collections` is told once and first, so that a page knows of what the rest speaks.
Rule 2: `status` is told at least every PULSE_SECONDS, changed or not: a page that hears nothing is cut off.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isfinite

import msgspec

from aggregator.deployment import ClientLimits
from aggregator.records.estimate import EstimateRecord
from aggregator.views.estimate_history import WINDOWS, EstimateHistory, point_of
from aggregator.web.event_feed import EventFeed
from estimators.collection import Collection

LOOK_SECONDS = 1.0
PULSE_SECONDS = 5.0


class PageFeed:
    """Feeds all open pages of one worker.

    Parameters
    ----------
    collections : in the order in which the page shows them.
    history : the windows that are known; `show` is told what it takes in.
    limits : of the clients, by the collection's name.
    status : gives what the head of the page tells.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        history: EstimateHistory,
        limits: Mapping[str, ClientLimits],
        status: Callable[[], object],
    ) -> None:
        self.feed = EventFeed()
        self.history = history
        self.limits = limits
        self.status = status
        self._collections = {collection.name: collection for collection in collections}
        self._told: dict[str, set[int]] = {name: set() for name in self._collections}  # starts of windows
        self.feed.put(("collections",), [about(collection) for collection in collections])

    def show(self, record: EstimateRecord) -> None:
        """Tell of an estimate that the history has taken in, and no more of windows that it gave up."""
        collection, told = self._collections[record.collection], self._told[record.collection]
        starts = self.history.starts(collection)
        if record.window_start == starts[-1]:
            self.feed.put(
                ("estimate", record.collection), msgspec.Raw(self.history.record(collection) or b"")
            )
        self.feed.put(("window", record.collection, record.window_start), point_of(record))
        told.add(record.window_start)
        for gone in told.difference(starts):
            self.feed.forget(("window", record.collection, gone))
            told.remove(gone)

    async def run(self) -> None:
        """Compute the limits, then tell how the worker is, until cancelled."""
        limits = asyncio.create_task(self._tell_limits())
        try:
            while True:
                status = self.status()
                self.feed.put(("status",), status)
                for _ in range(round(PULSE_SECONDS / LOOK_SECONDS)):
                    await asyncio.sleep(LOOK_SECONDS)
                    if self.status() != status:
                        break
        finally:
            limits.cancel()

    async def _tell_limits(self) -> None:
        """One at a time, since what a budget allows may be seconds of computing."""
        for name, limits in self.limits.items():
            told: dict[str, object] = {"collection": name, "per_window": limits.per_window, "budget": None}
            if limits.budget is not None:
                epsilon, delta, period_seconds = limits.budget
                per_period = await asyncio.to_thread(limits.per_period)
                told["budget"] = {
                    "epsilon": epsilon,
                    "delta": delta,
                    "period_seconds": period_seconds,
                    "reports": per_period,
                }
            self.feed.put(("limits", name), told)


def about(collection: Collection) -> dict[str, object]:
    """What a collection is and costs; epsilons in nats, None where unbounded."""
    permanent = collection.epsilon_inf
    return {
        "name": collection.name,
        "fingerprint": f"{collection.fingerprint:016x}",
        "mechanism": collection.mechanism.name,
        "values": collection.entries,
        "window_seconds": collection.window_seconds,
        "grace_seconds": collection.grace_seconds,
        "minimum_reports": collection.minimum_reports,
        "history_windows": WINDOWS,
        "epsilon": collection.mechanism.epsilon,
        "epsilon_permanent": permanent if isfinite(permanent) else None,
    }
