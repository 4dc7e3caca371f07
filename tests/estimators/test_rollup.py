"""Windows add up; if clients return, independent errors are too small and shared errors safe."""

import math

import numpy as np
import pytest

from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.rollup.hashed import roll_up_hashed
from deniable.estimators.rollup.matrix import roll_up_krr, roll_up_number, roll_up_one_hot_pair, roll_up_pair
from deniable.estimators.rollup.overlap import client_overlap
from deniable.estimators.rollup.rappor import _no_surer, roll_up_hot, roll_up_rappor
from tests.support.estimators.simulation import generator, zipf_counts
from tests.support.messages import PinMessages

WINDOWS = 20


@pytest.mark.parametrize(
    ("reports", "overlap"),
    [([7], 1), ([5, 5, 5], 3), ([10, 0, 0], 1), ([1, 2], (1 + 2 + 2 * 1) / 3), ([4, 1, 2], (7 + 2 * 4) / 7)],
)
def test_overlap_sums_the_smaller_of_each_pair(reports, overlap):
    assert client_overlap(np.array(reports)) == pytest.approx(overlap, rel=1e-15)


def randomize(rng, truth, mechanism: KRR):
    """One k-RR report for each entry."""
    other = (truth + rng.integers(1, mechanism.k, truth.shape)) % mechanism.k
    return np.where(rng.random(truth.shape) < mechanism.p, truth, other)


def krr_totals(rng, held, mechanism, returning):
    """Counts (k,) of all windows, each with all clients, who keep one permanent response or draw new ones."""
    times = 1 if returning else WINDOWS
    permanent = spread(rng, held * times, mechanism.permanent)
    return spread(rng, permanent * (WINDOWS // times), mechanism.instantaneous)


def spread(rng, counts, mechanism: KRR):
    """Counts (k,) of k-RR reports of so many clients of each value."""
    channel = np.full((mechanism.k, mechanism.k), mechanism.q) + mechanism.contrast * np.eye(mechanism.k)
    return rng.multinomial(counts, channel).sum(axis=0)


def bit_totals(rng, held, clients, mechanism, returning):
    """Counts of each bit in all windows of so many clients, of whom `held` have it."""
    times = 1 if returning else WINDOWS
    kept, flipped = held * times, (clients - held) * times
    ones = rng.binomial(kept, 1 - mechanism.f / 2) + rng.binomial(flipped, mechanism.f / 2)
    again = WINDOWS // times
    zeros = clients * times - ones
    return rng.binomial(again * ones, mechanism.q) + rng.binomial(again * zeros, mechanism.p)


def spread_over_errors(roll_ups, estimates):
    """Observed standard deviation over mean stated error, (independent, shared), averaged over values."""
    spread = np.std(estimates, axis=0)
    stated = [
        np.mean([getattr(result, kind).std_error for result in roll_ups], axis=0)
        for kind in ("independent", "shared")
    ]
    return [float(np.mean(spread / error)) for error in stated]


@pytest.mark.slow
@pytest.mark.parametrize(
    "returning", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["returning", "new-each-time"]
)
@pytest.mark.parametrize("rounds", [60, pytest.param(120, marks=pytest.mark.nightly)])
def test_krr_errors_with_returning_clients(returning, rounds):
    """120 rounds of 400 clients in 20 windows. The mean ratio of 8 values has sigma 0.03: within 0.15.

    Of 60 rounds it has .042, and the seed is fixed.
    """
    mechanism = LongitudinalKRR.from_epsilons(8, 2.0, 1.5)
    rng, held = generator(1), zipf_counts(8, 400)
    roll_ups, estimates = [], []
    for _ in range(rounds):
        counts = krr_totals(rng, held, mechanism, returning)
        roll_ups.append(roll_up_krr(counts, np.full(WINDOWS, 400), mechanism))
        estimates.append((counts / counts.sum() - mechanism.q) / mechanism.contrast)
    independent, shared = spread_over_errors(roll_ups, estimates)
    if returning:
        assert independent > 1.5
        assert shared == pytest.approx(1, abs=0.15)
    else:
        assert independent == pytest.approx(1, abs=0.15)
        assert shared < 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    "returning", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["returning", "new-each-time"]
)
@pytest.mark.parametrize("rounds", [60, pytest.param(120, marks=pytest.mark.nightly)])
def test_hot_errors_with_returning_clients(returning, rounds):
    """120 rounds of 400 clients, each in two of 8 buckets."""
    mechanism = HotRappor.from_probabilities(8, 2, 0.5, 0.3, 0.7)
    rng = generator(2)
    held = np.bincount(np.arange(400) % 3, minlength=8) + np.bincount(3 + np.arange(400) % 5, minlength=8)
    both = np.array([400 * WINDOWS]), np.full(WINDOWS, 400)  # reports of all windows, and of each
    roll_ups, estimates = [], []
    for _ in range(rounds):
        counts = bit_totals(rng, held, 400, mechanism, returning)
        roll_ups.append(roll_up_hot(counts[None], *both, mechanism))
        rates = counts / (400 * WINDOWS)
        estimates.append((rates - mechanism.p_star) / (mechanism.q_star - mechanism.p_star))
    independent, shared = spread_over_errors(roll_ups, estimates)
    if returning:
        assert independent > 1.5
        assert shared == pytest.approx(1, abs=0.15)
    else:
        assert independent == pytest.approx(1, abs=0.15)
        assert shared < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [24, pytest.param(60, marks=pytest.mark.nightly)])
def test_bloom_errors_with_returning_clients(rounds):
    """60 rounds of 10 words, 800 clients in 20 windows who keep bits and cohort: 600 intervals.

    Shared errors match the actual noise: the chi-square ratio of residuals is 1, and intervals cover at least
    91 % (95 % less 4.5 sigma). Independent errors would cover fewer than 80 % if they were not inflated by
    the unexplained residuals.
    """
    mechanism = Rappor.from_probabilities(32, 2, 2, 0.5, 0.2, 0.8)
    rng, words = generator(3), [f"word-{i}" for i in range(10)]
    held = zipf_counts(10, 800)
    values, truth = np.repeat(np.arange(10), held), held / 800
    filters = np.stack([
        np.unpackbits(bloom_rows(words, np.full(10, cohort), mechanism), axis=1, bitorder="little")
        for cohort in range(2)
    ])  # fmt: skip
    covered, ratios = [], []
    for _ in range(rounds):
        cohorts = rng.permutation(np.arange(800) % 2)
        in_cohort = [
            np.bincount(values[cohorts == c], minlength=10) @ filters[c].astype(np.int64) for c in (0, 1)
        ]
        counts = bit_totals(rng, np.array(in_cohort), 400, mechanism, returning=True)
        sizes, reports = np.full(2, 400 * WINDOWS), np.full(WINDOWS, 800)
        result = roll_up_rappor(counts, sizes, reports, words, mechanism, background=False)
        kinds = (result.independent, result.shared)
        ratios.append([kind.diagnostics["chi_square_ratio"] for kind in kinds])
        alone = np.sqrt(result.independent.std_error**2 - result.independent.misfit.std_error**2)
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
            "mle", 10, np.full(3, 0.1), np.ones(3), np.zeros(3), np.ones(3), np.array(found), (0.1, error), {}
        )
        for found, error in (([True, True, False], 0.2), ([True, False, True], 0.3))
    )
    safe = _no_surer(one, other)
    assert safe.significant.tolist() == [True, False, False]
    assert safe.other == (0.1, 0.3)


def fixed_noise_coverage(holders, clients, windows, mechanism):
    """Exact: every client sends `windows` reports from one permanent response; a sum over all counts."""
    instantaneous, permanent = mechanism.instantaneous, mechanism.permanent
    ways = np.array([math.comb(windows, hits) for hits in range(windows + 1)], float)
    hits = np.arange(windows + 1)
    same, other = (
        ways * rate**hits * (1 - rate) ** (windows - hits) for rate in (instantaneous.p, instantaneous.q)
    )
    probability = np.ones(1)
    for rate, number in ((permanent.p, holders), (permanent.q, clients - holders)):
        for _ in range(number):
            probability = np.convolve(probability, rate * same + (1 - rate) * other)
    total = clients * windows
    covered = 0.0
    for count in np.flatnonzero(probability > 1e-9):
        rest = (total - count) // (mechanism.k - 1)
        counts = np.array([count, *[rest] * (mechanism.k - 2), total - count - rest * (mechanism.k - 2)])
        shared = roll_up_krr(counts, np.full(windows, clients), mechanism).shared
        covered += probability[count] * (shared.low[0] <= holders / clients <= shared.high[0])
    return covered


@pytest.mark.all
@pytest.mark.parametrize(
    ("holders", "epsilons"),
    [
        pytest.param(0, (2.0, 1.9), id="nobody-mostly-permanent"),
        *(
            pytest.param(holders, epsilons, marks=pytest.mark.nightly)
            for holders, epsilons in (
                (0, (5.0, 1.0)), (3, (2.0, 1.9)), (3, (5.0, 1.0)), (10, (2.0, 1.9)), (30, (2.0, 1.9)),
                (30, (5.0, 1.0)), (10, (5.0, 1.0)),
            )
        ),
    ],
)  # fmt: skip
def test_shared_intervals_cover_returning_clients(holders, epsilons):
    """60 clients in 6 windows.

    Defects caught: independent errors (60 to 79 %). Tails of steps of 7 reports are bounds: up to 97.6 %.
    """
    mechanism = LongitudinalKRR.from_epsilons(4, *epsilons)
    covered = fixed_noise_coverage(holders, 60, 6, mechanism)
    assert 0.935 <= covered <= 0.98
    assert holders > 0 or covered >= 0.95


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


def test_numbers_of_windows_are_estimated_from_summed_counts():
    """Reports have no permanent response, so both assumptions about clients give one estimate."""
    mechanism = SquareWave.from_epsilon(0, 1, 16, 1)
    counts = generator(8).integers(100, 200, (3, mechanism.width))
    found = roll_up_number(counts.sum(axis=0), counts.sum(axis=1), mechanism)
    assert found.shared is found.independent
    assert found.overlap == client_overlap(counts.sum(axis=1))
    assert found.independent.reports == counts.sum()
    assert found.independent.mean is not None


@pytest.mark.slow
@pytest.mark.parametrize("returning", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_shared_errors_of_longitudinal_hashing_hold_if_clients_return(returning):
    """Clients keep function and permanent response over 10 windows, or draw both anew.

    The mean square of 20 estimates in stated errors has a deviation of 6 % over 30 runs, so a limit 5 of them
    away alarms falsely at 6e-7. If clients return, their reports agree as those of frequent values do,
    so errors allow for collisions that there are not: 0.4 instead of 1.
    """
    mechanism, rng, windows = LongitudinalHash.from_epsilons(2.0, 1.5, 4000, 5), generator(21), 10
    functions = hash_functions_of(mechanism, 3)
    words = [f"word {number}" for number in range(40)]
    truth = np.repeat(np.arange(40), 100)
    hashed = functions.words(words)[truth]
    squares = {"independent": 0.0, "shared": 0.0}
    for _ in range(30):
        counts = np.zeros(mechanism.width, np.int64)
        for window in range(windows):
            if window == 0 or not returning:
                function = rng.integers(mechanism.hash_functions, size=len(truth))
                permanent = randomize(rng, functions.buckets(hashed, function), mechanism.permanent)
            reported = randomize(rng, permanent, mechanism.instantaneous)
            counts += np.bincount(function * 5 + reported, minlength=mechanism.width)
        result = roll_up_hashed(counts, np.full(windows, len(truth)), words[:20], mechanism, 3)
        for name in squares:
            estimate = getattr(result, name)
            inverted = (estimate.supports / estimate.reports - mechanism.miss) / mechanism.contrast
            squares[name] += float((((inverted - 1 / 40) / estimate.std_error) ** 2).mean()) / 30
        assert (result.shared.std_error > result.independent.std_error).all()
        assert (result.shared.high >= result.independent.high).all()
    assert squares["shared"] < 1.3
    assert (0.1 if returning else 0.7) < squares["independent"] < 1.3


def test_bits_of_pairs_are_estimated_from_summed_counts():
    mechanism = OneHotPair.from_epsilon(3, 4, 2)
    counts = generator(11).integers(50, 300, (2, mechanism.bits))
    found = roll_up_one_hot_pair(counts.sum(axis=0)[None], np.array([1000]), np.array([500, 500]), mechanism)
    whole = decode_pair(counts.sum(axis=0)[None], np.array([1000]), mechanism)
    np.testing.assert_array_equal(found.independent.low, whole.low)
    assert found.shared is found.independent
    assert found.independent.pair is not None
    assert found.independent.pair.independence == whole.pair.independence


def test_pairs_of_windows_are_estimated_from_summed_counts():
    mechanism = PairKRR.from_epsilons(3, 4, 1, 1)
    counts = generator(9).integers(100, 200, (3, mechanism.width))
    found = roll_up_pair(counts.sum(axis=0), counts.sum(axis=1), mechanism)
    assert found.shared is found.independent
    assert found.overlap == client_overlap(counts.sum(axis=1))
    assert found.independent.reports == counts.sum()
    assert found.independent.pair is not None


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({"windows without reports": lambda: client_overlap(np.zeros(3, np.int64))})
