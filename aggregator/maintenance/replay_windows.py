"""Compares final counts in the topic `windows` with a recount."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import aclosing

import numpy as np

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.history.window_reader import windows_since
from deniable.aggregator.ledger import row_keys
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.maintenance.recount import StoredCounts
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.final_window import PageRun, decode_page, join_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection


async def final_counts(
    deployment: Deployment, claims: Iterable[StoredCounts], finals: Iterable[EstimateRecord]
) -> dict[Window, WindowCounts]:
    """Newest final counts of each window of known collections that may still be stored.

    Parameters
    ----------
    deployment : to read.
    claims : rows of `counts`, read before. After a rebuild they lack windows not estimated since.
    finals : final estimates, read before. The oldest window of either is the oldest compared.
    """
    starts = [
        key.window_start for each in claims for key in each.counted if isinstance(key, row_keys.CountKey)
    ] + [each.window_start for each in finals]
    newest: dict[Window, WindowCounts] = {}
    if not starts:
        return newest
    runs: defaultdict[int, PageRun] = defaultdict(PageRun)
    async with aclosing(windows_since(deployment.cluster, deployment.topics, min(starts))) as records:
        async for partition, record in records:
            try:
                page = decode_page(record.key or b"", record.value or b"")
                collection, pages = deployment.collections.get(page.fingerprint), runs[partition].take(page)
                if collection is None or not pages:
                    continue
                window, counts = page[:2], join_pages(pages, collection)
            except RowError:
                continue  # written by another program
            newest[window] = counts
    return newest


def counts_difference(
    window: Window, counts: WindowCounts, merged: MergedCounts, collections: Mapping[int, Collection]
) -> int:
    """Sum of absolute differences of all counters from the recount; 0 if its counts are no longer complete.

    Packs rejected after the window became final are no difference.
    """
    packs = merged.packs(window)
    if merged.is_dying(window):
        return 0
    expected = merged.totals(window, collections[window[0]])
    apart = (
        np.abs(counts.counts - expected.counts).sum()
        + np.abs(counts.cohort_sizes - expected.cohort_sizes).sum()
    )
    return int(apart) + abs(counts.packs - packs)
