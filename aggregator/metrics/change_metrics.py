"""Exported changes of shares and means: those that were found lately."""

from collections.abc import Collection as Names
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from deniable.aggregator.metrics import definitions
from deniable.aggregator.records.share_change import ShareChange

FIGURES = (
    definitions.SHARE_CHANGE,
    definitions.SHARE_CHANGE_LOW,
    definitions.SHARE_CHANGE_HIGH,
    definitions.SHARE_CHANGE_SINCE,
)
MEAN_FIGURES = (
    definitions.MEAN_CHANGE,
    definitions.MEAN_CHANGE_LOW,
    definitions.MEAN_CHANGE_HIGH,
    definitions.MEAN_CHANGE_SINCE,
)


class ChangeMetrics(Collector):
    """The newest change of each value that changed lately, by collection.

    Rule: values are those of the collection file, at most MOST_WATCHED of a collection, and a series exists
    only after an alarm.

    Parameters
    ----------
    registry : to register in.
    numbers : names of the collections whose change is one of the mean.
    """

    def __init__(self, registry: CollectorRegistry, numbers: Names[str] = ()) -> None:
        self._numbers = numbers
        self._shown: dict[str, dict[str, ShareChange]] = {}
        registry.register(self)

    def show(self, collection: str, changes: Sequence[ShareChange]) -> None:
        """Replace the changes of a collection; by time, the last of a value counts."""
        self._shown[collection] = {each.value: each for each in changes}

    def describe(self) -> list[Metric]:
        """Return nothing, because the metrics are not known in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics. Any thread may call this."""
        shares, means = ([each.family() for each in figures] for figures in (FIGURES, MEAN_FIGURES))
        for name, changes in self._shown.copy().items():
            is_number = name in self._numbers
            for value, each in changes.items():
                figures = (each.change, each.low, each.high, each.since)
                for family, figure in zip(means if is_number else shares, figures, strict=True):
                    family.add_metric([name] if is_number else [name, value], figure)
        yield from (*shares, *means)
