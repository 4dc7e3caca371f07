"""Events of the live page: collections, limits, estimates, the history of windows, the worker's status.

Rule 1: `collections` is sent once and first, since all other events refer to it.
Rule 2: `status` is sent at least every `timing.pulse` seconds, changed or not: silence counts as a failure.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isfinite

import msgspec

from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.history.window_shares import units_of
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.views.change_watch import unwatched
from deniable.aggregator.views.estimate_history import WINDOWS, EstimateHistory
from deniable.aggregator.web.event_feed import EventFeed
from deniable.aggregator.web.timing import DEFAULT, WebTiming
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.mechanism import longest_of


class PageFeed:
    """Feeds all open pages of one worker.

    Parameters
    ----------
    collections : in the order in which the page shows them.
    history : the known windows; pass each estimate it accepts to `show`.
    limits : of the clients, by collection name.
    status : returns the contents of the page's header.
    timing : of its looks at the status.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        history: EstimateHistory,
        limits: Mapping[str, ClientLimits],
        status: Callable[[], object],
        timing: WebTiming = DEFAULT,
    ) -> None:
        self.feed = EventFeed()
        self.history = history
        self.limits = limits
        self.status = status
        self.timing = timing
        self._collections = {collection.name: collection for collection in collections}
        self._starts: dict[str, set[int]] = {name: set() for name in self._collections}  # of sent windows
        self.feed.put(("collections",), [about(collection) for collection in collections])

    def show(self, record: EstimateRecord) -> None:
        """Send an estimate that the history accepted, and forget windows that it dropped."""
        collection, sent = self._collections[record.collection], self._starts[record.collection]
        own, starts = self.history.starts(collection), self.history.points(collection)
        if own and record.window_start == own[-1]:
            self.feed.put(
                ("estimate", record.collection), msgspec.Raw(self.history.record(collection) or b"")
            )
        if record.window_start in starts:
            point = self.history.point(collection, record)
            self.feed.put(("window", record.collection, record.window_start), point)
            sent.add(record.window_start)
        for gone in sent.difference(starts):
            self.feed.forget(("window", record.collection, gone))
            sent.remove(gone)

    def show_changes(
        self, collection: str, changes: Sequence[ShareChange], newest: Mapping[str, float]
    ) -> None:
        """Send the changes of a collection's shares that were found lately, by time.

        `newest` has the figures of the newest final window by label, in units; those that changed are sent.
        """
        watched = self._collections[collection]
        units, changed = units_of(watched), {each.value for each in changes}
        event = {
            "collection": collection,
            "a_year": watched.change_alarms_a_year,
            "range": [units.lowest, units.lowest + units.width],
            "changes": list(changes),
            "newest": {label: figure for label, figure in newest.items() if label in changed},
        }
        self.feed.put(("changes", collection), event)

    async def run(self) -> None:
        """Send the status, and the limits once computed, until cancelled."""
        limits = asyncio.create_task(self._send_limits())
        try:
            while True:
                status = self.status()
                self.feed.put(("status",), status)
                for _ in range(round(self.timing.pulse / self.timing.look)):
                    await asyncio.sleep(self.timing.look)
                    if self.status() != status:
                        break
        finally:
            limits.cancel()

    async def _send_limits(self) -> None:
        """One at a time, since a budget's limit may take seconds to compute."""
        for name, limits in self.limits.items():
            event: dict[str, object] = {
                "collection": name,
                "per_window": limits.per_window,
                "epsilon_any": limits.any_epsilon,
                "budget": None,
            }
            if limits.budget is not None:
                epsilon, delta, period_seconds = limits.budget
                per_period = await asyncio.to_thread(limits.per_period)
                event["budget"] = {
                    "epsilon": epsilon,
                    "delta": delta,
                    "period_seconds": period_seconds,
                    "reports": per_period,
                    "changes": limits.changes,
                    "values": limits.values,
                }
            self.feed.put(("limits", name), event)


def about(collection: Collection) -> dict[str, object]:
    """A collection's description and cost; epsilons in nats, None if unbounded.

    `longest` is the number of bytes at which texts of a prefix tree are cut; `unwatched` as the class of that
    name, None if changes are looked for.
    """
    permanent, gap = collection.epsilon_inf, unwatched(collection)
    return {
        "name": collection.name,
        "fingerprint": f"{collection.fingerprint:016x}",
        "mechanism": collection.mechanism.name,
        "values": collection.entries,
        "window_seconds": collection.window_seconds,
        "grace_seconds": collection.grace_seconds,
        "minimum_reports": collection.minimum_reports,
        "history_windows": WINDOWS,
        "longest": longest_of(collection.mechanism),
        "unwatched": None if gap is None else gap._asdict(),
        "epsilon": collection.mechanism.epsilon,
        "epsilon_permanent": permanent if isfinite(permanent) else None,
    }
