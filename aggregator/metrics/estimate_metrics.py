"""Exported estimates: the largest values of the newest window of each collection.

Rule: a worker process exports at most MOST_VALUES different values, whatever the estimates. Prometheus keeps
a series for every value ever shown, and among a million values without clients, noise puts different ones on
top of every estimate.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from deniable.aggregator.metrics import definitions
from deniable.aggregator.metrics.definitions import MOST_VALUES, VALUES_SHOWN
from deniable.aggregator.metrics.number_metrics import NumberFigures, number_families
from deniable.aggregator.records.estimate import EstimateRecord, Other
from deniable.aggregator.records.known_texts import FOUND_TEXTS
from deniable.estimators.detectors.fit import FIT

#: For each value shown, in the order of `_Value`.
FIGURES = (
    definitions.ESTIMATE_FREQUENCY,
    definitions.ESTIMATE_STD_ERROR,
    definitions.ESTIMATE_LOW,
    definitions.ESTIMATE_HIGH,
)
#: Four of Bloom RAPPOR, then two of local hashing, in the order of `_list_figures`.
LISTS = (
    definitions.LIST_CHI_SQUARE,
    definitions.LIST_CHI_SQUARE_LIMIT,
    definitions.LIST_UNEXPLAINED_BITS,
    definitions.LIST_UNRELIABLE_VALUES,
    definitions.LIST_UNLISTED_TEXTS,
    definitions.LIST_UNLISTED,
)
#: At most one figure of a collection each, in the order of `_single_figures`.
SINGLE = (
    definitions.ESTIMATE_INDEPENDENCE_P_VALUE,
    definitions.ESTIMATE_FIT_P_VALUE,
    definitions.FOUND_TEXTS,
)


class _Value(NamedTuple):
    value: str
    frequency: float
    std_error: float
    low: float
    high: float


class _Shown(NamedTuple):
    window_start: int
    reports: int
    values: list[_Value]
    other: Other | None
    number: NumberFigures | None
    single: tuple[float | None, ...]
    of_list: tuple[float | None, ...]


class EstimateMetrics(Collector):
    """The newest estimates, each replaced as a whole.

    Parameters
    ----------
    collections : names; each gets the same share of MOST_VALUES.
    registry : to register in.
    """

    def __init__(self, collections: Iterable[str], registry: CollectorRegistry) -> None:
        names = tuple(collections)
        self._share = MOST_VALUES // max(1, len(names))
        self._shown: dict[str, _Shown] = {}
        self._known: dict[str, set[str]] = {name: set() for name in names}  # values ever shown
        self._dropped = definitions.ESTIMATE_VALUES_DROPPED.register(registry)
        for name in names:
            self._dropped.labels(name)
        registry.register(self)

    def show(self, record: EstimateRecord) -> None:
        """Show an estimate, unless one of a later window is shown."""
        name = record.collection
        if name in self._shown and record.window_start < self._shown[name].window_start:
            return
        largest = np.argsort(-np.asarray(record.frequency), kind="stable")[:VALUES_SHOWN].tolist()
        places = [place for place in largest if self._admits(record, place)]
        self._dropped.labels(name).inc(len(largest) - len(places))
        values = [_value(record, place) for place in places]
        of_number = NumberFigures.of(record)
        single, of_list = _single_figures(record), _list_figures(record)
        self._shown[name] = _Shown(
            record.window_start, record.reports, values, record.other, of_number, single, of_list
        )

    def forget(self, collection: str) -> None:
        """Stop showing a collection."""
        self._shown.pop(collection, None)

    def describe(self) -> list[Metric]:
        """Return nothing, because the metrics are not known in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics. Any thread may call this."""
        figures = [metric.family() for metric in FIGURES]
        other = definitions.ESTIMATE_OTHER_FREQUENCY.family()
        other_error = definitions.ESTIMATE_OTHER_STD_ERROR.family()
        low, high = definitions.ESTIMATE_OTHER_LOW.family(), definitions.ESTIMATE_OTHER_HIGH.family()
        reports, window = definitions.ESTIMATE_REPORTS.family(), definitions.ESTIMATE_WINDOW_START.family()
        every = self._shown.copy()
        for name, shown in every.items():
            reports.add_metric([name], shown.reports)
            window.add_metric([name], shown.window_start)
            for value, *numbers in shown.values:
                for family, number in zip(figures, numbers, strict=True):
                    family.add_metric([name, value], number)
            if shown.other is not None:
                other.add_metric([name], shown.other.frequency)
                other_error.add_metric([name], _error(shown.other.std_error))
                if shown.other.low is not None and shown.other.high is not None:
                    low.add_metric([name], shown.other.low)
                    high.add_metric([name], shown.other.high)
        of_numbers = [(name, shown.number) for name, shown in every.items() if shown.number is not None]
        yield from (*figures, other, other_error, low, high, reports, window)
        yield from (*number_families(of_numbers), *_single_families(every), *_list_families(every))

    def _admits(self, record: EstimateRecord, place: int) -> bool:
        """Whether a value may be shown: noise must not use up the share of real values."""
        known, value = self._known[record.collection], record.values[place]
        if value in known:
            return True
        all_fit = len(record.values) + record.omitted <= self._share and not record.discovered_at
        if len(known) >= self._share or not (all_fit or record.significant[place]):
            return False
        known.add(value)
        return True


def _single_families(shown: Mapping[str, _Shown]) -> Iterator[Metric]:
    for place, metric in enumerate(SINGLE):
        family = metric.family()
        for name, each in shown.items():
            if (figure := each.single[place]) is not None:
                family.add_metric([name], figure)
        yield family


def _single_figures(record: EstimateRecord) -> tuple[float | None, ...]:
    """Return the figures of SINGLE; None where the estimate has no such figure."""
    p_value = None if record.pair is None else record.pair.independence.p_value
    return p_value, record.diagnostics.get(FIT), record.diagnostics.get(FOUND_TEXTS)


def _list_families(shown: Mapping[str, _Shown]) -> Iterator[Metric]:
    families = [metric.family() for metric in LISTS]
    for name, each in shown.items():
        for family, figure in zip(families, each.of_list, strict=True):
            if figure is not None:
                family.add_metric([name], figure)
    yield from families


def _list_figures(record: EstimateRecord) -> tuple[float | None, ...]:
    """Return what the fit says about the list of candidates; None where the mechanism has no such figure."""
    figures = record.diagnostics
    of_texts = figures.get("unlisted_texts"), figures.get("unlisted_share")
    if not {"chi_square_ratio", "chi_square_limit"} <= figures.keys():
        return None, None, None, None, *of_texts
    ratio, limit = figures["chi_square_ratio"], figures["chi_square_limit"]
    return ratio, limit, figures.get("unexplained_bits", 0.0), float(sum(record.unreliable)), *of_texts


def _value(record: EstimateRecord, place: int) -> _Value:
    return _Value(
        record.values[place],
        record.frequency[place],
        _error(record.std_error[place]),
        record.low[place],
        record.high[place],
    )


def _error(std_error: float | None) -> float:
    return inf if std_error is None else std_error
