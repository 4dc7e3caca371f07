"""No valid counts make an estimate, a roll-up or a comparison raise, warn, or state what cannot be.

Warnings of numpy (overflow, division by 0, invalid values) are errors here as in all tests.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.aggregator.estimation.window_estimate import estimate, records_of
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.comparison import JoinedPeriod, compare_periods
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate, IntervalEnds, Shares
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.estimators.adversarial_counts import MECHANISMS, collection_of, windows_of

EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ROUNDING = 1e-9

FloatArray = NDArray[np.float64]


def check_ends(ends: IntervalEnds | Shares | Estimate, frequency: FloatArray | None = None) -> None:
    """Ends are in order, within [0, 1], and around the estimate."""
    assert np.isfinite(ends.low).all()
    assert np.isfinite(ends.high).all()
    assert ends.low.min() >= 0
    assert ends.high.max() <= 1
    assert (ends.low <= ends.high).all()
    if frequency is not None:
        assert (ends.low <= frequency + ROUNDING).all()
        assert (frequency <= ends.high + ROUNDING).all()


def check_estimate(collection: Collection, window: WindowCounts, found: Estimate) -> None:
    """All that an estimate states can be."""
    check_ends(found, found.frequency)
    assert (found.std_error > 0).all()
    assert all(np.isfinite(each) for each in found.diagnostics.values())
    if found.unbiased is not None:
        assert np.isfinite(found.unbiased).all()
    if found.for_all is not None:
        check_ends(found.for_all, found.frequency)
        assert (found.for_all.low <= found.low + ROUNDING).all()
        assert (found.high <= found.for_all.high + ROUNDING).all()
    if found.mean is not None:
        mean = found.mean
        assert 0 <= mean.low <= mean.value <= mean.high <= 1
        assert mean.std_error >= 0
    for quantile in found.quantiles:
        assert 0 <= quantile.low <= quantile.value <= quantile.high <= 1
    if found.pair is not None:
        for each in (*found.pair.margins, found.pair.given_first, found.pair.given_second):
            check_ends(each, each.frequency)
        assert 0 <= found.pair.independence.p_value <= 1
    check_records(collection, window, found)


def check_records(collection: Collection, window: WindowCounts, found: Estimate) -> None:
    """Records are written, without NaN, which JSON has no number for, and with an `other` that can be."""
    for record in records_of(collection, 0, window, found, final=True):
        assert b"NaN" not in msgspec.json.encode(record)
        assert not any(np.isnan(number) for number in numbers_of(msgspec.to_builtins(record)))
        if record.other is not None:
            other = record.other
            assert -ROUNDING <= other.low <= other.frequency + ROUNDING
            assert other.frequency <= other.high + ROUNDING <= getattr(collection.mechanism, "hot", 1) + 1e-6


def numbers_of(part: object) -> Iterator[float]:
    """Every float of a record."""
    if isinstance(part, float):
        yield part
    elif isinstance(part, dict):
        for each in part.values():
            yield from numbers_of(each)
    elif isinstance(part, list):
        for each in part:
            yield from numbers_of(each)


def joined(window: WindowCounts, start: int = 0) -> Joined:
    """A window as the sum of two, of which one may be empty."""
    first = window.reports // 3
    return Joined(window, {start: first, start + 60: window.reports - first}, (), {}, 0)


def check_roll_up(collection: Collection, window: WindowCounts) -> None:
    found = roll_up(collection, joined(window))
    assert found is not None
    check_estimate(collection, window, found.shared)
    check_estimate(collection, window, found.independent)


def check_comparison(collection: Collection, first: WindowCounts, second: WindowCounts) -> None:
    sides = (JoinedPeriod(Period(0, 120), joined(first)), JoinedPeriod(Period(600, 720), joined(second, 600)))
    found = compare_periods(collection, *sides, 0.05)
    low, high, p_value = (np.array(each) for each in (found.low, found.high, found.p_value))
    assert ((low >= -1) & (low <= high) & (high <= 1)).all()
    assert ((p_value >= 0) & (p_value <= 1)).all()


def check_counts(collection: Collection, window: WindowCounts, before: WindowCounts) -> None:
    check_estimate(collection, window, estimate(collection, window))
    check_roll_up(collection, window)
    if not isinstance(collection.mechanism, SquareWave):
        check_comparison(collection, before, window)


def search(kind: str, size: int, epsilon: float, every: int = 1) -> None:
    """Check one in `every` of the handmade counts, each beside the one before."""
    collection = collection_of(kind, size, epsilon)
    windows = list(windows_of(collection, np.random.default_rng(5)))
    for place in range(0, len(windows), every):
        name, window = windows[place]
        try:
            check_counts(collection, window, windows[place - 1][1])
        except Exception as error:
            error.add_note(f"{kind}, size {size}, epsilon {epsilon}: {name} after {windows[place - 1][0]}")
            raise


@pytest.mark.all
@pytest.mark.parametrize("kind", MECHANISMS)
def test_some_handmade_counts_are_estimated(kind: str) -> None:
    for number, epsilon in enumerate((0.01, 2.0, 16.0)):
        search(kind, (2, 6, 24)[number], epsilon, every=50)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", MECHANISMS)
def test_all_handmade_counts_are_estimated(kind: str, epsilon: float) -> None:
    for size in (2, 3, 7, 40):
        search(kind, size, epsilon)
    search(kind, 1000, epsilon, every=7)


@st.composite
def number_windows(draw: st.DrawFn) -> tuple[Collection, WindowCounts]:
    """Few reports in few cells of a number."""
    size, epsilon = draw(st.sampled_from((4, 16, 64))), draw(st.sampled_from(EPSILONS))
    collection = collection_of("number", size, epsilon)
    cells = st.dictionaries(st.integers(0, collection.width - 1), st.integers(1, 60), min_size=1, max_size=12)
    counts = np.zeros((1, collection.width), np.int64)
    for cell, reports in draw(cells).items():
        counts[0, cell] = reports
    return collection, WindowCounts(counts, counts.sum(axis=1), 1, 0)


@pytest.mark.slow
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(number_windows())
def test_few_reports_of_a_number_are_estimated(drawn: tuple[Collection, WindowCounts]) -> None:
    check_counts(*drawn, drawn[1])


@pytest.mark.nightly
@settings(max_examples=3000, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(number_windows())
def test_many_windows_of_few_numbers_are_estimated(drawn: tuple[Collection, WindowCounts]) -> None:
    check_counts(*drawn, drawn[1])
