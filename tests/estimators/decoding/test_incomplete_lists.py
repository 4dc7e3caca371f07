"""Lists that lack strings: intervals of fixed candidates cover over windows, or the candidate is flagged."""

import numpy as np
import pytest

from estimators.decoding.bloom import decode
from estimators.mechanisms.rappor import Rappor
from estimators.rollup import roll_up_rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts

pytestmark = pytest.mark.slow

REAL = [f"real-{i}" for i in range(105)]
DECOYS = [f"decoy-{i}" for i in range(200)]
STRANGERS = [f"stranger-{i}" for i in range(30)]
WINDOWS = 12


def population(reports, strangers):
    """80 % in the real candidates, 20 % in the strangers, each by Zipf's law, int64 (105 + strangers,)."""
    listed = reports * 4 // 5
    return np.append(zipf_counts(105, listed), zipf_counts(strangers, reports - listed))


def coverage(cohorts, reports, strangers, windows=WINDOWS):
    """Decode windows of one population; return covered and unreliable, bool arrays (windows, 305)."""
    mechanism = Rappor.from_probabilities(128, 2, cohorts, 0.25, 0.35, 0.65)
    rng, held = generator(cohorts + strangers), population(reports, strangers)
    truth = np.append(held[:105], np.zeros(200)) / reports
    covered, unreliable = [], []
    for _ in range(windows):
        counts = rappor_counts(rng, held, REAL + STRANGERS[:strangers], mechanism)
        result = decode(*counts, REAL + DECOYS, mechanism)
        covered.append((result.low <= truth) & (truth <= result.high))
        unreliable.append(result.misfit.unreliable)
        assert not result.significant[result.misfit.unreliable].any()
    return np.array(covered), np.array(unreliable)


@pytest.mark.parametrize(
    ("cohorts", "reports", "strangers"),
    [(8, 5_000_000, 30), (8, 336_776, 1), (64, 5_000_000, 1), (8, 5_000_000_000, 30)],
    ids=["30-strings", "one-string", "64-cohorts", "1000-windows"],
)
def test_intervals_of_fixed_candidates_cover(cohorts, reports, strangers):
    """12 windows of the same strings. A candidate that 80 % cover is covered in 2 or fewer with probability
    5e-6. Defect caught with 99.9 %: misfit that is taken for noise; some candidates were then never covered.
    """
    covered, unreliable = coverage(cohorts, reports, strangers, WINDOWS if cohorts == 8 else 4)
    each = (covered | unreliable).mean(axis=0)
    assert each.min() >= 0.25
    assert np.quantile(each, 0.01) >= 0.66
    assert unreliable.mean() <= 0.15


def test_one_cohort_cannot_tell_candidates_from_unlisted_strings():
    """With two bits a candidate: one unlisted string may have raised both, so nothing is stated."""
    mechanism = Rappor.from_probabilities(128, 2, 1, 0.25, 0.35, 0.65)
    held = population(5_000_000, 5)
    counts = rappor_counts(generator(1), held, REAL + STRANGERS[:5], mechanism)
    result = decode(*counts, REAL[:50], mechanism)
    assert result.misfit.unreliable.all()
    assert np.isinf(result.std_error).all()
    assert (result.low == 0).all()
    assert (result.high == 1).all()


def test_misfit_does_not_shrink_in_roll_ups():
    """1,000 windows have a thirtieth of the sampling error; strings too rare to be seen in bits stay misfit.

    200 unlisted strings of about 0.1 %: misfit must be most of the error, and at least a third of that of one
    window.
    """
    mechanism = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    strangers = [f"rare-{i}" for i in range(200)]
    errors = []
    for windows in (1, 1000):
        reports = 5_000_000 * windows
        held = np.append(zipf_counts(105, reports * 4 // 5), np.full(200, reports // 1000))
        counts = rappor_counts(generator(2), held, REAL + strangers, mechanism)
        each = np.full(windows, 5_000_000)
        rolled = roll_up_rappor(*counts, each, REAL, mechanism)
        errors.append(np.median(rolled.independent.misfit.std_error))
        assert (rolled.shared.misfit.std_error >= rolled.independent.misfit.std_error).all()
        whole = rolled.independent.std_error
    assert errors[1] > 0.9 * np.median(whole)
    assert errors[1] > errors[0] / 3
