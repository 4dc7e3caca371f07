"""What `deniable compare` prints for people: what marks allow for, and why nothing is compared."""

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.comparison import ComparisonRecord, JoinedPeriod, compare_periods
from deniable.deploy.query.compare import compare, lines_of
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.support.aggregator.builders import FRUIT, T0

EARLY, LATE = Period(T0, T0 + 10), Period(T0 + 10, T0 + 20)


def compared(collection: Collection, *counts: np.ndarray) -> ComparisonRecord:
    """Compare two windows of these counts (cohorts, width)."""
    sides = []
    for period, each in zip((EARLY, LATE), counts, strict=True):
        window = WindowCounts(each, each.sum(axis=1), 1, 0)
        sides.append(JoinedPeriod(period, Joined(window, {period.start: window.reports}, [], {}, 0)))
    return compare_periods(collection, *sides, 0.05)


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        (0, ["0 of 4 shares differ (*)"]),
        (1, ["1 of 4 shares differs (*); of those, at most 5 % are expected to be false"]),
        (2, ["2 of 4 shares differ (*); of those, at most 5 % are expected to be false"]),
    ],
)
def test_marks_allow_for_noise_alone_which_is_said(marked: int, said: list[str]) -> None:
    """Of none marked nothing is expected to be false."""
    alike = np.array([[5000, 3000, 2000, 1500]])
    record = compared(FRUIT, alike, alike)
    lines = lines_of(msgspec.structs.replace(record, significant=[place < marked for place in range(4)]))
    if marked:
        said = [
            *said,
            "* allows for the randomizers' noise alone: where other people report in each period, shares may",
            "differ although nobody changed",
        ]
    assert lines[2 : len(said) + 2] == said
    assert lines[len(said) + 2].startswith("value ")


def test_counts_that_contradict_the_parameters_are_named_by_period() -> None:
    """Of 8,000 reports the last value has none, where lies alone are hundreds."""
    honest, forged = np.array([[5000, 3000, 2000, 1500]]), np.array([[8000, 500, 500, 0]])
    record = compared(FRUIT, honest, forged)
    assert [place for place, fit in enumerate(record.fit_p_value) if fit < 1e-6] == [1]
    (said,) = [line for line in lines_of(record) if "the counts contradict the parameters" in line]
    assert said.startswith(f"{record.other_period}: ")


def test_a_difference_beyond_its_interval_is_shown_at_its_end() -> None:
    """Nobody reports the first value, then everybody: noise takes the unbiased difference beyond 1."""
    before, after = np.array([[2000, 3500, 3500, 3000]]), np.array([[12_000, 0, 0, 0]])
    record = compared(FRUIT, before, after)
    assert record.difference[0] > 1
    (row,) = [line.split() for line in lines_of(record) if line.startswith(f"{record.values[0]} ")]
    assert row[3] == row[5] == "+1.000000"
    assert float(row[4]) == pytest.approx(record.low[0], abs=1e-6)


def test_help_says_what_marks_allow_for() -> None:
    said = " ".join(CliRunner().invoke(compare, ["--help"]).output.split())
    assert "are of the randomizers' noise alone" in said
    assert "shares may differ although nobody changed" in said


def test_comparison_without_candidates_says_so() -> None:
    """Of a growing collection whose file lists none: no share is counted, and none is tested."""
    mechanism = PrefixTree.from_epsilon((2, 3), 4.0)
    text = Collection("text", mechanism, window_seconds=10, growth=GrowthRule(2, 0.05))
    even = np.full((2, text.width), 500)
    *periods, said = lines_of(compared(text, even, even))
    assert [each.endswith(" reports in 1 window") for each in periods] == [True, True]
    assert said.startswith("text has no candidates, so no shares are estimated: deniable decode text --grow")
