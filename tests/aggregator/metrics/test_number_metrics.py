"""The exported distribution of a number: cumulative, complete, and of a bounded number of series."""

import numpy as np
import pytest

from deniable.aggregator.estimation.window_estimate import estimate, record_of
from deniable.aggregator.metrics.definitions import EDGES_SHOWN
from deniable.aggregator.metrics.number_metrics import NumberFigures, shares_below
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import T0, changed, estimate_of

REPORTS = 100_000


def number_record(minimum: float, maximum: float, steps: int) -> EstimateRecord:
    """An estimate of numbers in the lower quarter of the range."""
    mechanism = SquareWave.from_epsilon(minimum, maximum, steps, 4.0)
    collection = Collection("air", mechanism)
    quarter = np.where(np.arange(steps) < steps / 4, 1.0, 0.0)
    counts = np.random.default_rng(3).multinomial(REPORTS, mechanism.channel @ (quarter / quarter.sum()))
    window = WindowCounts(counts.reshape(1, -1), np.array([counts.sum()]), 10, 0)
    return record_of(collection, T0, window, estimate(collection, window), final=True)


@pytest.mark.parametrize(("steps", "series"), [(4, 4), (32, 32), (33, 32), (100, 25), (256, 32)])
def test_shares_are_cumulative_at_evenly_spaced_edges(steps: int, series: int) -> None:
    record = number_record(-0.5, 719.5, steps)
    below = shares_below(record)
    edges, shares = np.array([float(edge) for edge, _ in below]), np.array([share for _, share in below])
    assert record.density is not None
    assert len(below) == series <= EDGES_SHOWN
    assert edges[-1] == 719.5
    assert shares[-1] == pytest.approx(1)
    widths, step = np.diff(edges, prepend=-0.5), 720 / steps
    assert widths.max() - widths.min() <= step + 1e-2
    expected = [sum(record.density.frequency[: round((edge + 0.5) / step)]) for edge in edges]
    assert shares == pytest.approx(expected)
    assert (np.diff(shares) >= 0).all()
    assert np.interp(0.3 * 720 - 0.5, edges, shares) > 0.9, "nearly all are in the lower quarter"


def test_edges_differ_where_the_range_is_narrow() -> None:
    """Labels of two edges are never equal, or one of them would replace the other."""
    below = shares_below(number_record(1e9, 1e9 + 600, 256))
    assert len({edge for edge, _ in below}) == len(below) == EDGES_SHOWN


def test_no_distribution_without_all_steps() -> None:
    record = number_record(0, 1, 16)
    assert shares_below(changed(record, omitted=1)) == []
    figures = NumberFigures.of(record)
    assert figures is not None
    assert figures.below == shares_below(record)
    assert NumberFigures.of(estimate_of()) is None
