"""The reach of a sum of bounded errors, against exact tails of Poisson counts."""

import numpy as np
import pytest
from scipy.special import ndtr, pdtr, pdtrc

from deniable.estimators.frequency.intervals.bounded_steps import normal_equivalent, reach_beyond_normal

MEANS = np.concatenate([10.0 ** np.linspace(-6, 4, 101), [1e6]])


@pytest.mark.parametrize("quantile", [1.645, 1.96, 3.5])
def test_counts_exceed_the_reach_no_more_often_than_stated(quantile):
    """Up and down; of a normal alone the worst of these is 3 to 100 times as likely."""
    reach = quantile * np.sqrt(MEANS) + reach_beyond_normal(MEANS, np.ones(len(MEANS)), quantile)
    stated = ndtr(-quantile)
    assert (pdtrc(np.ceil(MEANS + reach) - 1, MEANS) <= stated).all()
    below = np.floor(MEANS - reach)
    assert (np.where(below < 0, 0, pdtr(np.maximum(below, 0), MEANS)) <= stated).all()
    alone = pdtrc(np.ceil(MEANS + quantile * np.sqrt(MEANS)) - 1, MEANS)
    assert alone.max() > 3 * stated


def test_many_steps_are_a_normal():
    reach = reach_beyond_normal(np.array([1e6]), np.ones(1), 1.96)
    assert reach[0] == pytest.approx(0.5 + 1.96**2 / 6, rel=1e-2)


@pytest.mark.parametrize("variance", [1e-20, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("step", [1e-9, 2.0])
def test_equivalent_of_the_reach_is_its_quantile(variance, step):
    variances, steps = np.array([variance * step**2]), np.array([step])
    errors = 2.5 * np.sqrt(variances) + reach_beyond_normal(variances, steps, 2.5)
    assert normal_equivalent(errors, variances, steps)[0] == pytest.approx(2.5, rel=1e-4)


def test_a_single_report_is_no_discovery():
    """However rare a lie is: it is an error of half a step beyond what is counted."""
    found = normal_equivalent(np.array([0.5, 0.0, -3.0]), np.full(3, 1e-12), np.ones(3))
    assert (found <= 0).all()
