"""The simulations of changes of a mean count what they say, and their tables show it."""

import numpy as np
import pytest

from bench.estimators.numbers.mean_changes import ENDS, EVEN, MIDDLE, RARE, SCENES, alarms, delay, text_of


def test_scenes_keep_their_mean() -> None:
    centres = (np.arange(64) + 0.5) / 64
    assert [float(centres @ each) for each in (EVEN, ENDS, MIDDLE)] == pytest.approx([0.5] * 3)
    assert RARE.sum() == pytest.approx(1)


@pytest.mark.slow
def test_all_figures_are_in_the_tables() -> None:
    """At 0.1 a year, 200 windows without a change raise an alarm in 1 of 400 runs at most."""
    rng = np.random.default_rng(1)
    of_alarms = [alarms(rng, each, 0.1, 200 / 8766) for each in SCENES]
    assert [each.alarms for each in of_alarms] == [0, 0, 0]
    found = delay(rng, 4.0, 3)
    assert (found.found, found.covered) == (1, 1)
    assert 1 <= found.delay < 10
    text = text_of(of_alarms, [found])
    assert "| a spread that changes | 0.1 |" in text
    assert f"| 4 | 100 | {found.delay:.1f} | 100.0 |" in text
