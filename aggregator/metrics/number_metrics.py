"""Exported estimates of numbers: mean, quantiles, and the distribution at a few edges.

Rule: a number has at most EDGES_SHOWN series of its distribution, however many rows it has.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

import numpy as np
from prometheus_client.core import Metric

from deniable.aggregator.metrics import definitions
from deniable.aggregator.metrics.definitions import EDGES_SHOWN
from deniable.aggregator.records.estimate import EstimateRecord, NumberMean, NumberQuantile
from deniable.estimators.mechanisms.square_wave import SquareWave

MEANS = (definitions.ESTIMATE_MEAN, definitions.ESTIMATE_MEAN_LOW, definitions.ESTIMATE_MEAN_HIGH)
QUANTILES = (
    definitions.ESTIMATE_QUANTILE,
    definitions.ESTIMATE_QUANTILE_LOW,
    definitions.ESTIMATE_QUANTILE_HIGH,
)


class NumberFigures(NamedTuple):
    """What is exported of one number.

    Parameters
    ----------
    mean, quantiles : of the record.
    below : edge, as text, and the share of numbers below it, by ascending edges.
    """

    mean: NumberMean
    quantiles: list[NumberQuantile]
    below: list[tuple[str, float]]

    @classmethod
    def of(cls, record: EstimateRecord) -> Self | None:
        """Return the figures of a record; None unless it is of a number."""
        if record.mean is None:
            return None
        return cls(record.mean, record.quantiles, shares_below(record))


def shares_below(record: EstimateRecord) -> list[tuple[str, float]]:
    """Sum up the shares of a number's rows at EDGES_SHOWN evenly spaced edges, or at all if there are fewer.

    Parameters
    ----------
    record : of a number: its values are lower edges of rows, ascending. Without all of them, there is no
        distribution to show.

    Returns
    -------
    Upper edges of rows, as text, and the share of numbers below each: ascending, to 1 at the maximum.
    """
    rows = len(record.values)
    if record.mechanism != SquareWave.name or record.omitted or rows < 2:
        return []
    lower = np.array(record.values, np.float64)
    of_one_width = lower[-1] + (lower[-1] - lower[0]) / (rows - 1)  # records of older versions say no more
    upper = np.append(lower[1:], record.density.maximum if record.density else of_one_width)
    count = min(EDGES_SHOWN, rows)
    places = np.arange(1, count + 1) * rows // count - 1
    shares = np.cumsum(record.frequency)
    return [(f"{upper[place]:.10g}", float(shares[place])) for place in places]


def number_families(shown: Iterable[tuple[str, NumberFigures]]) -> Iterator[Metric]:
    """Return the metrics of numbers, given by the name of their collection."""
    means, quantiles = [[each.family() for each in metrics] for metrics in (MEANS, QUANTILES)]
    below = definitions.ESTIMATE_BELOW.family()
    for name, (mean, levels, shares) in shown:
        for family, figure in zip(means, (mean.value, mean.low, mean.high), strict=True):
            family.add_metric([name], figure)
        for one in levels:
            for family, figure in zip(quantiles, (one.value, one.low, one.high), strict=True):
                family.add_metric([name, f"{one.level:g}"], figure)
        for edge, share in shares:
            below.add_metric([name, edge], share)
    yield from (*means, *quantiles, below)
