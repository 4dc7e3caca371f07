"""States of the windows whose counts are stored."""

from collections import Counter
from collections.abc import Callable, Mapping

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.records.estimate import SETTLE_SECONDS
from deniable.estimators.collection import Collection

STATES = ("open", "late", "final", "small")


def window_states(
    merged: MergedCounts,
    collections: Mapping[int, Collection],
    partitions: int,
    is_final: Callable[[Window], bool],
    now: float,
) -> dict[str, Counter[str]]:
    """Count the windows of each collection by state.

    Parameters
    ----------
    merged : counts.
    collections : by fingerprint; windows of others are skipped.
    partitions : number of partitions that count.
    is_final : whether a final estimate of a window was published.
    now : unix seconds, by the machine's clock. It decides nothing but metrics; the log's clock stands still
        while a partition has no worker, which is when windows are late.

    Returns
    -------
    Numbers of windows by collection name and state: `open` until a window should be final, then `late`
    until it is `final`; `small` if it has too few reports to become final.
    """
    found = {collection.name: Counter(dict.fromkeys(STATES, 0)) for collection in collections.values()}
    for window in merged.windows():
        collection = collections.get(window[0])
        if collection is not None:
            state = (
                "final" if is_final(window) else _before_final(merged, window, collection, partitions, now)
            )
            found[collection.name][state] += 1
    return found


def _before_final(
    merged: MergedCounts, window: Window, collection: Collection, partitions: int, now: float
) -> str:
    closes_at = merged.closes_at(window, partitions)
    if closes_at is None or now <= closes_at + SETTLE_SECONDS:
        return "open"
    return "late" if merged.reports(window) >= collection.minimum_reports else "small"
