"""The simulations of coverage, false alarms and delay count what they say, and their tables show it."""

from statistics import NormalDist

import numpy as np
import pytest

from bench.estimators.changes.anytime import (
    LOOKS,
    WATCHED,
    alarms,
    delay,
    fixed_level,
    sequences,
    text_of,
    together,
)


@pytest.mark.all
def test_all_figures_are_in_the_tables() -> None:
    """Of 60 runs with 10 values, single intervals cover all in about 60 %: more than 90 % has 1e-7."""
    rng = np.random.default_rng(1)
    of_all = together(rng, (10, 10_000, 1.0, 1.3), 60)
    assert of_all.single < 0.9 < of_all.for_all <= 1
    looks = sequences(rng, 5, returning=False)
    assert len(looks.widths) == len(LOOKS)
    assert looks.fixed_all_values <= looks.fixed < looks.sequence
    assert looks.widths[0] > 2
    of_alarms = alarms(rng, WATCHED[0], 0.1, 0.05)
    assert of_alarms.alarms == 0
    assert 1000 < of_alarms.naive_a_year < 8766
    assert of_alarms.strict_a_year < of_alarms.naive_a_year / 5
    found = delay(rng, 4.0, 3)
    assert (found.found, found.covered) == (1, 1)
    assert 1 <= found.delay < 10
    assert found.fixed[0] == 1
    assert 1 <= found.fixed[1] < 5
    assert found.fixed[1] <= found.strict[1] < 200
    text = text_of([of_all], [looks], [of_alarms], [found])
    assert "| 10 | 10,000 | 1 | 1.3 |" in text
    assert f"| new clients, shares that vary | {100 * looks.fixed:.1f} |" in text
    assert "| 10 | 10,000 | 0.1 | 0.05 |" in text
    assert f"| 4 | 100 | {found.delay:.1f} |" in text
    assert f"| 100 | {found.fixed[1]:.1f} | {100 * found.strict[0]:.0f} | {found.strict[1]:.1f} |" in text


def test_fixed_time_intervals_of_the_allowed_rate_have_it() -> None:
    """Windows, values and both tails of a year times the level's tail give the rate."""
    tail = NormalDist().cdf(-fixed_level(10, 0.1))
    assert tail * 2 * 10 * 8766 == pytest.approx(0.1, rel=1e-6)
