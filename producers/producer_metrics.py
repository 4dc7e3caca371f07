"""What a producer tells Prometheus: its counters, read when they are asked for.

No label holds a client, and no number depends on a true value.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from producers.counters import Counters

REPORTS = "Reports by what became of them; acknowledged ones were stored, expired ones acknowledged."


class ProducerMetrics(Collector):
    """Metrics of one producer.

    Parameters
    ----------
    collections : names; each is shown from the start, at 0.
    counters : returns the totals at this moment.
    """

    def __init__(self, collections: Iterable[str], counters: Callable[[], Counters]) -> None:
        self._collections = tuple(collections)
        self._counters = counters

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering asks for no counters."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        counters = self._counters()
        yield self._reports(counters)
        refused = CounterMetricFamily(
            "deniable_producer_refused", "Reports refused.", labels=["collection", "reason"]
        )
        for (name, reason), count in counters.refused.items():
            refused.add_metric([name, reason], count)
        yield refused
        yield CounterMetricFamily("deniable_producer_packs", "Packs acknowledged.", counters.packs)
        yield CounterMetricFamily("deniable_producer_sent_bytes", "Bytes acknowledged.", counters.bytes)
        backlog = counters.backlog
        for name, meaning, value in (
            ("packs", "Packs that wait for acknowledgement.", backlog.packs),
            ("bytes", "Bytes of the outbox.", backlog.bytes),
            ("age_seconds", "Age of the oldest pack in the outbox.", backlog.seconds),
            ("unsendable_packs", "Packs that are damaged, or of a later version.", counters.unsendable),
        ):
            yield GaugeMetricFamily(f"deniable_producer_outbox_{name}", meaning, value)
        yield self._budget_used(counters)

    def _reports(self, counters: Counters) -> Metric:
        family = CounterMetricFamily("deniable_producer_reports", REPORTS, labels=["collection", "result"])
        by_result = {
            "stored": counters.stored,
            "acknowledged": counters.acknowledged,
            "dropped": counters.dropped,
            "expired": counters.expired,
        }
        for name in self._collections:
            for result, counts in by_result.items():
                family.add_metric([name, result], counts.get(name, 0))
            refused = sum(count for (other, _), count in counters.refused.items() if other == name)
            family.add_metric([name, "refused"], refused)
        return family

    def _budget_used(self, counters: Counters) -> Metric:
        family = GaugeMetricFamily(
            "deniable_producer_budget_used_ratio",
            "Largest share of its budget that a client has spent in this period.",
            labels=["collection"],
        )
        for name, ratio in counters.backlog.budget_used.items():
            family.add_metric([name], ratio)
        return family
