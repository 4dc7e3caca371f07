"""Intervals of selected estimates: far away they are the usual ones, near the threshold they still cover."""

from statistics import NormalDist

import numpy as np
import pytest

from deniable.estimators.frequency.intervals.conditional import selected_interval, selected_quantile
from tests.support.estimators.simulation import generator


def test_far_above_the_threshold_the_selection_does_not_matter():
    x, s = np.array([0.5]), np.array([0.01])
    low, high = selected_interval(x, s, np.array([0.1]))
    assert low == pytest.approx(0.5 - 1.959964 * 0.01, abs=1e-8)
    assert high == pytest.approx(0.5 + 1.959964 * 0.01, abs=1e-8)
    assert selected_quantile(x, s, np.array([0.1]), 0.5) == pytest.approx(0.5, abs=1e-8)


def test_the_share_found_gives_the_estimate_its_probability():
    """Of estimates above the threshold, those of a normal: P(X <= x | X > c) is what was asked for."""
    x, c, s = 5.0, 4.0, 1.0
    for probability in (0.025, 0.5, 0.975):
        share = selected_quantile(np.array([x]), np.array([s]), np.array([c]), probability)
        law = NormalDist(-float(share[0]), s)  # the mirror image: its tails are exact
        assert 1 - law.cdf(-x) / law.cdf(-c) == pytest.approx(probability, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "share", [1.0, 3.0, *(pytest.param(each, marks=pytest.mark.nightly) for each in (4.0, 6.0))]
)
def test_intervals_cover_as_often_as_stated_given_the_selection(share):
    """20,000 selected estimates: coverage is binomial, so 95 % -+ 0.75 %, false-alarm rate 1e-6.

    Intervals of +- 1.96 cover a share of 3 errors, selected at 4, with 84 %, and one of 1 error never.
    """
    rng, c = generator(4), 4.0
    # By inversion of the tail, so that shares far below the threshold cost no more.
    law = NormalDist(share, 1.0)
    tail = rng.random(20_000) * (1 - law.cdf(c))
    x = np.array([2 * share - law.inv_cdf(each) for each in tail])  # of the mirror image
    low, high = selected_interval(x, np.ones(len(x)), np.full(len(x), c))
    assert abs(((low <= share) & (share <= high)).mean() - 0.95) < 0.0075
    middle = selected_quantile(x, np.ones(len(x)), np.full(len(x), c), 0.5)
    assert abs((middle <= share).mean() - 0.5) < 0.0175
