"""Windows add up; if clients return, independent errors are too small and shared errors safe."""

import numpy as np
import pytest

from estimators.frequency.estimate import Estimate
from estimators.mechanisms.bloom_filter import bloom_rows
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.rollup import _no_surer, client_overlap, roll_up_hot, roll_up_krr, roll_up_rappor
from tests.support.estimators.simulation import generator, zipf_counts

WINDOWS = 20


@pytest.mark.parametrize(
    ("reports", "overlap"),
    [([7], 1), ([5, 5, 5], 3), ([10, 0, 0], 1), ([1, 2], (1 + 2 + 2 * 1) / 3), ([4, 1, 2], (7 + 2 * 4) / 7)],
)
def test_overlap_sums_the_smaller_of_each_pair(reports, overlap):
    assert client_overlap(np.array(reports)) == pytest.approx(overlap, rel=1e-15)


def test_overlap_without_reports_is_rejected():
    with pytest.raises(ValueError, match=r"^window_reports must hold at least 1 report, got 0$"):
        client_overlap(np.zeros(3, np.int64))


def randomize(rng, truth, mechanism: KRR):
    """One k-RR report for each entry."""
    other = (truth + rng.integers(1, mechanism.k, truth.shape)) % mechanism.k
    return np.where(rng.random(truth.shape) < mechanism.p, truth, other)


def krr_windows(rng, truth, mechanism, returning):
    """Counts (windows, k), each window with all clients, who keep one permanent response or draw new ones."""
    permanent = randomize(rng, truth, mechanism.permanent)
    rows = []
    for _ in range(WINDOWS):
        if not returning:
            permanent = randomize(rng, truth, mechanism.permanent)
        reports = randomize(rng, permanent, mechanism.instantaneous)
        rows.append(np.bincount(reports, minlength=mechanism.k))
    return np.array(rows)


def bit_windows(rng, bits, mechanism, returning):
    """Bit counts (windows, width) of clients whose true bits are the rows of `bits`."""
    rows = []
    permanent = bits ^ (rng.random(bits.shape) < mechanism.f / 2)
    for _ in range(WINDOWS):
        if not returning:
            permanent = bits ^ (rng.random(bits.shape) < mechanism.f / 2)
        threshold = np.where(permanent, mechanism.q, mechanism.p)
        rows.append((rng.random(bits.shape) < threshold).sum(axis=0))
    return np.array(rows)


def spread_over_errors(roll_ups, estimates):
    """Observed standard deviation over mean stated error, (independent, shared), averaged over values."""
    spread = np.std(estimates, axis=0)
    stated = [
        np.mean([getattr(result, kind).std_error for result in roll_ups], axis=0)
        for kind in ("independent", "shared")
    ]
    return [float(np.mean(spread / error)) for error in stated]


@pytest.mark.parametrize("returning", [True, False], ids=["returning", "new-each-time"])
def test_krr_errors_with_returning_clients(returning):
    """120 rounds of 400 clients in 20 windows. The mean ratio of 8 values has sigma 0.03: within 0.15."""
    mechanism = LongitudinalKRR.from_epsilons(8, 2.0, 1.5)
    rng, truth = generator(1), np.repeat(np.arange(8), zipf_counts(8, 400))
    roll_ups, estimates = [], []
    for _ in range(120):
        counts = krr_windows(rng, truth, mechanism, returning)
        roll_ups.append(roll_up_krr(counts.sum(axis=0), counts.sum(axis=1), mechanism))
        estimates.append((counts.sum(axis=0) / counts.sum() - mechanism.q) / mechanism.contrast)
    independent, shared = spread_over_errors(roll_ups, estimates)
    if returning:
        assert independent > 1.5
        assert shared == pytest.approx(1, abs=0.15)
    else:
        assert independent == pytest.approx(1, abs=0.15)
        assert shared < 0.7


@pytest.mark.parametrize("returning", [True, False], ids=["returning", "new-each-time"])
def test_hot_errors_with_returning_clients(returning):
    """120 rounds of 400 clients, each in two of 8 buckets."""
    mechanism = HotRappor.from_probabilities(8, 2, 0.5, 0.3, 0.7)
    rng = generator(2)
    bits = np.zeros((400, 8), bool)
    bits[np.arange(400), np.arange(400) % 3] = True
    bits[np.arange(400), 3 + np.arange(400) % 5] = True
    both = np.array([400 * WINDOWS]), np.full(WINDOWS, 400)  # reports of all windows, and of each
    roll_ups, estimates = [], []
    for _ in range(120):
        counts = bit_windows(rng, bits, mechanism, returning)
        roll_ups.append(roll_up_hot(counts.sum(axis=0)[None], *both, mechanism))
        rates = counts.sum(axis=0) / (400 * WINDOWS)
        estimates.append((rates - mechanism.p_star) / (mechanism.q_star - mechanism.p_star))
    independent, shared = spread_over_errors(roll_ups, estimates)
    if returning:
        assert independent > 1.5
        assert shared == pytest.approx(1, abs=0.15)
    else:
        assert independent == pytest.approx(1, abs=0.15)
        assert shared < 0.7


def test_bloom_errors_with_returning_clients():
    """60 rounds of 10 words, 800 clients in 20 windows who keep bits and cohort: 600 intervals.

    Shared errors match the actual noise: the chi-square ratio of residuals is 1, and intervals cover at least
    91 % (95 % less 4.5 sigma). Independent errors would cover fewer than 80 % if they were not inflated by
    the unexplained residuals.
    """
    mechanism = Rappor.from_probabilities(32, 2, 2, 0.5, 0.2, 0.8)
    rng, words = generator(3), [f"word-{i}" for i in range(10)]
    held = zipf_counts(10, 800)
    values, truth = np.repeat(words, held).tolist(), held / 800
    covered, ratios = [], []
    for _ in range(60):
        cohorts = rng.permutation(np.arange(800) % 2)
        bits = np.unpackbits(bloom_rows(values, cohorts, mechanism), axis=1, bitorder="little").astype(bool)
        counts = np.stack([bit_windows(rng, bits[cohorts == c], mechanism, True) for c in (0, 1)], axis=1)
        sizes, reports = np.full(2, 400 * WINDOWS), np.full(WINDOWS, 800)
        result = roll_up_rappor(counts.sum(axis=0), sizes, reports, words, mechanism, background=False)
        kinds = (result.independent, result.shared)
        ratios.append([kind.diagnostics["chi_square_ratio"] for kind in kinds])
        alone = result.independent.std_error / np.sqrt(ratios[-1][0])
        near = np.abs(result.independent.frequency - truth) <= 1.96 * alone
        covered.append([near, (result.shared.low <= truth) & (truth <= result.shared.high)])
    independent, shared = np.mean(covered, axis=(0, 2))
    assert independent < 0.8
    assert shared >= 0.91
    assert np.mean(ratios, axis=0)[0] > 2
    assert np.mean(ratios, axis=0)[1] == pytest.approx(1, abs=0.15)


def test_shared_errors_are_at_least_the_independent_ones():
    """Two candidates of 20 strings: residuals of the other strings widen `independent` only."""
    mechanism = Rappor.from_probabilities(128, 2, 4, 0.25, 0.35, 0.65)
    words = [f"word-{i}" for i in range(20)]
    held = np.stack(
        [
            np.unpackbits(bloom_rows(words, np.full(20, cohort), mechanism), axis=1, bitorder="little").mean(
                0
            )
            for cohort in range(4)
        ]
    )
    counts = np.round(100_000 * (mechanism.p_star + (mechanism.q_star - mechanism.p_star) * held)).astype(int)
    result = roll_up_rappor(counts, np.full(4, 100_000), np.full(4, 100_000), words[:2], mechanism)
    safe, other = result.shared, result.independent
    assert (safe.std_error >= other.std_error).all()
    assert ((safe.low <= other.low) & (safe.high >= other.high)).all()
    assert safe.other[1] >= other.other[1]


def test_shared_significance_requires_both():
    one, other = (
        Estimate(
            "mle", 10, np.zeros(3), np.ones(3), np.zeros(3), np.ones(3), np.array(found), (0.1, error), {}
        )
        for found, error in (([True, True, False], 0.2), ([True, False, True], 0.3))
    )
    safe = _no_surer(one, other)
    assert safe.significant.tolist() == [True, False, False]
    assert safe.other == (0.1, 0.3)


def test_plain_krr_has_no_permanent_noise():
    result = roll_up_krr(np.array([110, 50]), np.array([80, 80]), KRR.from_epsilon(2, 1.0))
    assert result.shared is result.independent
    assert result.independent.reports == 160
    assert result.overlap == 2


def test_one_window_gives_its_own_estimate():
    mechanism = LongitudinalKRR.from_epsilons(4, 2.0, 1.0)
    result = roll_up_krr(np.array([400, 300, 200, 100]), np.array([1000]), mechanism)
    np.testing.assert_allclose(result.shared.std_error, result.independent.std_error, rtol=1e-12)
    assert result.overlap == 1
