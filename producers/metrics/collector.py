"""Export a producer's counters to Prometheus, read at each scrape."""

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import product

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from deniable.producers.metrics import definitions
from deniable.producers.metrics.counters import Counters
from deniable.protocol.metric import single
from deniable.protocol.wire import GROUP_REASONS


class ProducerMetrics(Collector):
    """Metrics of one producer.

    Parameters
    ----------
    collections : names; each is exported from the start, at 0.
    counters : returns the present totals.
    differing : returns the collections that workers count with other parameters, or not at all.
    """

    def __init__(
        self,
        collections: Iterable[str],
        counters: Callable[[], Counters],
        differing: Callable[[], Container[str]] = frozenset,
    ) -> None:
        self._differing = differing
        self._collections = tuple(collections)
        self._counters = counters

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read counters."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        counters = self._counters()
        yield self._reports(counters)
        refused = definitions.REFUSED.family()
        for key in product(self._collections, definitions.REASONS):
            refused.add_metric(key, counters.refused.get(key, 0))
        yield refused
        rejected = definitions.REJECTED.family()
        for key in product(self._collections, (*GROUP_REASONS, definitions.OTHER_REASON)):
            rejected.add_metric(key, counters.rejected.get(key, 0))
        yield rejected
        backlog = counters.backlog
        yield single(definitions.PACKS, counters.packs)
        yield single(definitions.SENT_BYTES, counters.bytes)
        yield single(definitions.OUTBOX_PACKS, backlog.packs)
        yield single(definitions.OUTBOX_BYTES, backlog.bytes)
        yield single(definitions.OUTBOX_AGE, backlog.seconds)
        yield single(definitions.OUTBOX_UNSENDABLE, counters.unsendable)
        yield single(definitions.BUDGET_STORE_AWAY, counters.is_budget_store_away)
        differ, differing = definitions.PARAMETERS_DIFFER.family(), self._differing()
        for name in self._collections:
            differ.add_metric([name], name in differing)
        yield differ
        used = definitions.BUDGET_USED.family()
        for name, ratio in counters.budget_used.items():
            used.add_metric([name], ratio)
        yield used

    def _reports(self, counters: Counters) -> Metric:
        family = definitions.REPORTS.family()
        by_result = {
            "stored": counters.stored,
            "acknowledged": counters.acknowledged,
            "dropped": counters.dropped,
            "expired": counters.expired,
        }
        for name in self._collections:
            for result, counts in by_result.items():
                family.add_metric([name, result], counts.get(name, 0))
            for result, by_reason in (("refused", counters.refused), ("rejected", counters.rejected)):
                count = sum(count for (other, _), count in by_reason.items() if other == name)
                family.add_metric([name, result], count)
        return family
