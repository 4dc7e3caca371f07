"""Final windows that former owners of a partition have published, for the first looks of a new one."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import aclosing

from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.records.final_window import PageRun, decode_page, join_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS, records_since
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics


async def former_windows(
    cluster: Cluster,
    topics: Topics,
    partition: int,
    collections: Mapping[int, Collection],
    since: Mapping[int, int],
) -> dict[int, dict[int, WindowCounts]]:
    """Counts of the final windows of some collections in one partition of `windows`.

    Of several results of a window the last one in the log counts.

    Parameters
    ----------
    cluster, topics : of the deployment.
    partition : that these collections are estimated in; fenced, so that nobody else publishes there.
    collections : by fingerprint.
    since : start of the first window, unix seconds, by fingerprint of those wanted.

    Returns
    -------
    Counts by fingerprint and window start, unix seconds.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    found: dict[int, dict[int, WindowCounts]] = {fingerprint: {} for fingerprint in since}
    if not since:
        return found
    runs: defaultdict[Window, PageRun] = defaultdict(PageRun)
    first_ms = min(since.values()) * 1000 - CLOCKS_MILLISECONDS
    async with aclosing(records_since(cluster, topics.windows, [partition], first_ms)) as records:
        async for _, record in records:
            try:
                page = decode_page(record.key or b"", record.value or b"")
                if page.window_start < since.get(page.fingerprint, page.window_start + 1):
                    continue
                if pages := runs[page[:2]].take(page):
                    counts = join_pages(pages, collections[page.fingerprint])
                    found[page.fingerprint][page.window_start] = counts
            except RowError:
                continue  # of another program or version
    return found
