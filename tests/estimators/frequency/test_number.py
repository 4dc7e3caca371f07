"""Histogram, mean and quantiles of numbers from Square Wave reports, held against published figures."""

import math

import numpy as np
import pytest

from deniable.estimators.frequency.number import (
    LEVELS,
    estimate_number,
    quantile,
    row_sums,
    unbiased_mean,
)
from deniable.estimators.frequency.numbers.smoothed_em import report_rates
from deniable.estimators.mechanisms.square_wave import SquareWave

UNIT = SquareWave.from_epsilon(0, 1, 256, 1)
REPORTS = 100_000
#: Distance W1 to the truth by epsilon: Beta(5, 2), 100,000 reports, 256 cells, mean of three runs of sw.py of
#: github.com/vvv214/LDP_Protocols, which is the paper's authors'.
PUBLISHED_W1 = {0.5: 0.0097, 1.0: 0.0047, 2.0: 0.0022, 4.0: 0.0007}


def draw(counts_of_truth, mechanism, generator):
    """Counts of reports: each true cell's reports are spread by its column of the channel."""
    columns = mechanism.channel / mechanism.channel.sum(axis=0)
    return sum(generator.multinomial(n, columns[:, x]) for x, n in enumerate(counts_of_truth))


def piecewise_std_error(numbers, epsilon):
    """Wang et al., ICDE 2019, equation 8: standard error of the Piecewise mechanism's mean, in [0, 1]."""
    root = math.exp(epsilon / 2)
    squares = np.mean((2 * numbers - 1) ** 2)
    variance = squares / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    return math.sqrt(variance / len(numbers)) / 2


@pytest.mark.all
@pytest.mark.parametrize("runs", [4, pytest.param(8, marks=pytest.mark.nightly)])
def test_errors_are_the_published_ones(runs):
    """Also below those of the Piecewise mechanism for the mean, pooled over the epsilons (at 4 they are not).

    A run's distance has a relative standard deviation of .18 to .36, so the mean of 8 runs is above the limit
    in fewer than 1e-3 of other seeds, of 4 in fewer than 1 %. The pooled ratio of variances is .6 with a
    standard deviation of .15, with 4 runs .21.
    """
    generator = np.random.default_rng(11)
    ratios = []
    for epsilon, published in PUBLISHED_W1.items():
        mechanism = SquareWave.from_epsilon(0, 1, 256, epsilon)
        numbers = generator.beta(5, 2, REPORTS)
        truth = np.bincount(mechanism.cells(numbers), minlength=256)
        distances = []
        for _ in range(runs):
            found = estimate_number(draw(truth, mechanism, generator), mechanism)
            assert found.mean is not None
            apart = np.cumsum(found.density) - np.cumsum(truth / REPORTS)
            distances.append(np.abs(apart).mean())
            error = (found.mean.value - numbers.mean()) / piecewise_std_error(numbers, epsilon)
            ratios.append(error**2)
        assert np.mean(distances) < 1.5 * published, epsilon
    assert np.mean(ratios) < 1


def jagged_shares(generator):
    """Steps with independent shares, none before a tenth of the range, and one with a tenth of all."""
    shares = generator.dirichlet(np.full(256, 0.5))
    shares[:26] = 0
    shares[77] += 0.1
    return shares / shares.sum()


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_intervals_cover(runs):
    """Of 243 intervals of nine quantiles, and 27 of the mean, over three smooth shapes and three epsilons.

    A third of them with the fixed seed.

    If each holds .95, and a run's quantiles count as two, the share of the quantiles is below .85 in fewer
    than 1e-3 of other seeds, that of the means below .7 in fewer than 1e-4. Intervals of a third of the
    errors hold .83 and .22.
    """
    generator = np.random.default_rng(12)
    shapes = {
        "beta": generator.beta(5, 2, REPORTS),
        "two peaks": np.where(
            generator.random(REPORTS) < 0.5,
            generator.normal(0.25, 0.06, REPORTS),
            generator.normal(0.7, 0.08, REPORTS),
        ),
        "exponential": generator.exponential(0.15, REPORTS),
    }
    covered, means = [], []
    for numbers in shapes.values():
        numbers = np.clip(numbers, 0, 1)
        for epsilon in (1, 2, 4):
            mechanism = SquareWave.from_epsilon(0, 1, 256, epsilon)
            truth = np.bincount(mechanism.cells(numbers), minlength=256)
            for _ in range(runs):
                found = estimate_number(draw(truth, mechanism, generator), mechanism)
                assert found.mean is not None
                means.append(found.mean.low <= numbers.mean() <= found.mean.high)
                covered += [
                    each.low <= np.quantile(numbers, each.level) <= each.high for each in found.quantiles
                ]
    assert len(covered) == 81 * runs
    assert np.mean(covered) > 0.85
    assert np.mean(means) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("runs", [4, pytest.param(8, marks=pytest.mark.nightly)])
def test_intervals_cover_jagged_densities(runs):
    """Of 144 quantiles, and the steps of 16 runs, at two epsilons; half of them with the fixed seed.

    If each holds .95, and a run's quantiles count as two, the share of the quantiles is below .8 in fewer
    than 1e-4 of other seeds, that of the steps below .9 in fewer than 1e-6. With a step that smooths as much
    as the estimate the intervals hold .68 of the quantiles and .51 of the steps.
    """
    generator = np.random.default_rng(21)
    covered, rows = [], []
    for epsilon in (1, 2):
        mechanism = SquareWave.from_epsilon(0, 1, 256, epsilon)
        for _ in range(runs):
            truth = generator.multinomial(300_000, jagged_shares(generator))
            shares = truth / truth.sum()
            found = estimate_number(draw(truth, mechanism, generator), mechanism)
            true = row_sums(shares, mechanism)
            rows.append(np.mean((found.low <= true) & (true <= found.high)))
            covered += [
                each.low <= quantile(each.level, shares, mechanism) <= each.high for each in found.quantiles
            ]
    assert np.mean(covered) > 0.8
    assert np.mean(rows) > 0.9


def expected_estimate(numbers, mechanism, reports):
    """The estimate of as many reports as expected, without noise."""
    shares = np.bincount(mechanism.cells(numbers), minlength=mechanism.steps) / len(numbers)
    return estimate_number(np.rint(reports * report_rates(shares, mechanism)).astype(np.int64), mechanism)


@pytest.mark.slow
def test_a_trillion_reports_of_one_cell_are_estimated():
    """Beside them EM comes to 0 elsewhere, whose logarithm Newton's method needs."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 512, 8.0)
    counts = np.zeros(mechanism.width, np.int64)
    counts[257] = 2**40
    found = estimate_number(counts, mechanism)
    assert np.isfinite(found.frequency).all()
    assert found.mean.low <= 0.5009765625 <= found.mean.high


@pytest.mark.parametrize("steps", [16, 64, 256])
def test_interval_of_the_mean_holds_rounded_numbers(steps):
    """Two fifths are rounded to tenths, so the mean is not that of the middles of their steps.

    Of a billion reports noise alone has an error of less than a tenth of that difference.
    """
    generator = np.random.default_rng(22)
    exact = np.clip(generator.normal(0.45, 0.2, REPORTS), 0, 1)
    numbers = np.where(generator.random(REPORTS) < 0.4, np.round(exact, 1), exact)
    mechanism = SquareWave.from_epsilon(0, 1, steps, 4)
    found = expected_estimate(numbers, mechanism, 10**9)
    assert found.mean is not None
    assert found.mean.low < numbers.mean() < found.mean.high
    assert found.mean.high - found.mean.low < 0.5 / steps


@pytest.mark.slow
@pytest.mark.parametrize(("number", "factor"), [(0.31, 1.0), (1.0, math.sqrt(5 / 6))])
def test_equal_numbers_may_be_anywhere_in_their_step(number, factor):
    """The error is a uniform one over the step; at an end of the range one neighbour is missing."""
    mechanism = SquareWave.from_epsilon(0, 1, 16, 4)
    found = expected_estimate(np.full(10, number), mechanism, 10**9)
    assert found.mean is not None
    assert found.mean.std_error == pytest.approx(factor / 16 / math.sqrt(12), rel=1e-3)
    assert found.mean.low < number <= found.mean.high


def test_error_of_the_mean_is_noise_alone_where_shares_rise_evenly():
    """So it falls with the root of the reports."""
    mechanism = SquareWave.from_epsilon(0, 1, 32, 4)
    numbers = np.repeat((np.arange(32) + 0.5) / 32, np.arange(100, 132))
    errors = []
    for reports in (10**5, 10**7):
        found = expected_estimate(numbers, mechanism, reports)
        assert found.mean is not None
        errors.append(found.mean.std_error * math.sqrt(reports))
    assert errors[0] == pytest.approx(errors[1], rel=0.01)


@pytest.mark.slow
def test_noise_is_not_taken_for_equal_numbers():
    """Errors of 40 windows of uniform numbers are on average at most 7 % above that of noise alone.

    They are 2.5 % above it, and 11.6 % if noise is not subtracted, with a standard deviation of .7 % of 40.
    """
    generator = np.random.default_rng(23)
    mechanism = SquareWave.from_epsilon(0, 1, 16, 1)
    truth, errors = np.full(16, 625), []
    for _ in range(40):
        found = estimate_number(draw(truth, mechanism, generator), mechanism)
        assert found.mean is not None
        errors.append(found.mean.std_error)
    alone = expected_estimate(np.arange(16) / 16, mechanism, 10_000).mean
    assert alone is not None
    assert np.mean(errors) < 1.07 * alone.std_error


def test_interval_of_a_quantile_has_whole_steps():
    """A third of the numbers are in the first step: their quantile may be at either edge of it."""
    mechanism = SquareWave.from_epsilon(0, 1, 8, 16)
    counts = np.zeros(mechanism.width, np.int64)
    counts[mechanism.half_width + np.array([0, 3, 7])] = 1_000_000
    quantiles = {each.level: each for each in estimate_number(counts, mechanism).quantiles}
    assert (quantiles[0.1].low, quantiles[0.1].high) == (0, 1 / 8)
    assert (quantiles[0.5].low, quantiles[0.5].high) == (3 / 8, 4 / 8)
    assert (quantiles[0.9].low, quantiles[0.9].high) == (7 / 8, 1)


def test_a_row_is_the_sum_of_its_steps():
    """Its share, interval and error are of one quantity, with which the density agrees."""
    counts = np.arange(1, UNIT.width + 1)
    found = estimate_number(counts, UNIT)
    np.testing.assert_allclose(found.frequency, found.density.reshape(8, 32).sum(axis=1))
    assert ((found.low <= found.frequency) & (found.frequency <= found.high)).all()
    np.testing.assert_array_equal(UNIT.row_edges, np.arange(9) * 32)


@pytest.mark.parametrize(
    ("steps", "epsilon", "edges"),
    [
        (240, 1.0, range(0, 241, 30)),
        (8, 0.5, range(0, 9, 2)),
        (4, 16.0, range(5)),
        (512, 16.0, range(0, 513, 16)),
        (251, 1.0, [0, 31, 62, 94, 125, 156, 188, 219, 251]),
    ],
)
def test_rows_are_half_of_the_near_band_wide(steps, epsilon, edges):
    """A half of its half width, in 4 to 32 rows of one width, but for prime numbers of steps."""
    mechanism = SquareWave.from_epsilon(0, 1, steps, epsilon)
    np.testing.assert_array_equal(mechanism.row_edges, list(edges))


def test_expected_counts_of_a_smooth_distribution_give_it_back():
    """No noise: what remains is the bias of smoothing, which the diagnostic names."""
    cells = (np.arange(256) + 0.5) / 256
    truth = cells**2 * (1 - cells)
    truth /= truth.sum()
    counts = np.round(report_rates(truth, UNIT) * 10**9).astype(np.int64)
    found = estimate_number(counts, UNIT)
    assert np.abs(np.cumsum(found.density) - np.cumsum(truth)).max() < 2e-3
    assert found.diagnostics["bias"] < 0.02
    true = row_sums(truth, UNIT)
    assert ((found.low <= true) & (true <= found.high)).mean() > 0.9
    assert found.mean is not None
    assert found.mean.low <= truth @ cells <= found.mean.high


@pytest.mark.slow
def test_estimate_moves_with_the_range():
    counts = np.random.default_rng(13).multinomial(20_000, report_rates(np.full(256, 1 / 256), UNIT))
    moved = SquareWave(-100, 300, 256, UNIT.half_width, UNIT.threshold)
    one, other = estimate_number(counts, UNIT), estimate_number(counts, moved)
    np.testing.assert_allclose(one.frequency, other.frequency)
    assert one.mean is not None
    assert other.mean is not None
    assert other.mean.value == pytest.approx(400 * one.mean.value - 100)
    assert other.mean.std_error == pytest.approx(400 * one.mean.std_error)
    for here, there in zip(one.quantiles, other.quantiles, strict=True):
        assert (here.level, there.value) == (there.level, pytest.approx(400 * here.value - 100))
        assert there.low == pytest.approx(400 * here.low - 100)
        assert there.high == pytest.approx(400 * here.high - 100)


@pytest.mark.slow
@pytest.mark.parametrize("reports", [1, 100, 10**9])
@pytest.mark.parametrize("epsilon", [0.1, 1, 16])
def test_figures_are_ordered_and_in_range(reports, epsilon):
    mechanism = SquareWave.from_epsilon(-5, 5, 64, epsilon)
    counts = np.random.default_rng(14).multinomial(reports, report_rates(np.full(64, 1 / 64), mechanism))
    found = estimate_number(counts, mechanism)
    assert found.reports == reports
    assert ((found.low >= 0) & (found.low <= found.frequency) & (found.frequency <= found.high)).all()
    assert (found.high <= 1).all()
    assert (found.std_error > 0).all()
    assert found.mean is not None
    assert -5 <= found.mean.low <= found.mean.value <= found.mean.high <= 5
    assert tuple(each.level for each in found.quantiles) == LEVELS
    assert all(-5 <= each.low <= each.value <= each.high <= 5 for each in found.quantiles)
    assert sorted(each.value for each in found.quantiles) == [each.value for each in found.quantiles]


def test_quantile_is_inside_its_cell():
    mechanism = SquareWave.from_epsilon(0, 4, 4, 1)
    frequency = np.array([0.1, 0.4, 0.3, 0.2])
    assert quantile(0.1, frequency, mechanism) == pytest.approx(1)
    assert quantile(0.3, frequency, mechanism) == pytest.approx(1.5)
    assert quantile(0.9, frequency, mechanism) == pytest.approx(3.5)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_unbiased_mean_is_exact_for_expected_counts(epsilon):
    """Of jagged numbers too, and with the variance that the channel and the numbers have together."""
    mechanism = SquareWave.from_epsilon(-30, 50, 16, epsilon)
    truth = np.zeros(16)
    truth[[0, 3, 15]] = 0.5, 0.3, 0.2
    rates = mechanism.channel @ truth
    counts = np.rint(rates * 10**12).astype(np.int64)
    centres = (mechanism.edges[:-1] + mechanism.edges[1:]) / 2
    mean, error = unbiased_mean(counts, mechanism)
    assert mean == pytest.approx(centres @ truth, abs=1e-6)
    scores = [unbiased_mean(each, mechanism)[0] for each in np.eye(mechanism.width, dtype=np.int64)]
    assert error**2 * counts.sum() == pytest.approx(rates @ (np.array(scores) - mean) ** 2)


def test_error_of_the_unbiased_mean_is_the_measured_one():
    """Of 2,000 windows; the standard deviation of so many is known to 1.6 %, and 6 times that is allowed."""
    generator = np.random.default_rng(3)
    mechanism = SquareWave.from_epsilon(0, 1, 64, 1)
    rates = mechanism.channel @ np.repeat([0.3, 0.7], 32) / 32
    found = [unbiased_mean(each, mechanism) for each in generator.multinomial(1000, rates, 2000)]
    means, errors = np.array(found).T
    assert np.std(means) == pytest.approx(errors.mean(), rel=0.1)
    assert np.mean(means) == pytest.approx(0.6, abs=6 * errors.mean() / np.sqrt(2000))


@pytest.mark.parametrize("held", [{19: 10_000}, {12: 500_000, 53: 500_000}], ids=["one", "two"])
def test_shares_of_atoms_are_held_where_no_report_is_false(held: dict[int, int]) -> None:
    """Expected counts at epsilon 16, without noise. Defect caught: a step of EM from the smoothed histogram
    went 6e-4 beyond the share of one value.
    """
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 64, 16.0)
    truth = np.zeros(64)
    truth[list(held)] = list(held.values())
    found = estimate_number(np.rint(mechanism.channel @ truth).astype(np.int64), mechanism)
    true = row_sums(truth, mechanism) / truth.sum()
    assert (found.low <= true + 1e-9).all()
    assert (true <= found.high + 1e-9).all()


def test_a_mean_is_held_wherever_in_their_cells_even_numbers_are() -> None:
    """A million numbers, 4 standard deviations of an even spread above the middles of their cells."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 64, 16.0)
    counts = np.full(64, 15_625)
    found = estimate_number(counts, mechanism).mean
    assert found is not None
    offset = 4 / 64 / np.sqrt(12e6)
    assert found.low <= 0.5 - offset <= 0.5 + offset <= found.high


@pytest.mark.parametrize(
    "counts", [np.zeros(UNIT.width, np.int64), np.ones(5, np.int64), np.full(UNIT.width, -1)]
)
def test_bad_counts_are_refused(counts):
    with pytest.raises(ValueError, match="counts"):
        estimate_number(counts, UNIT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "epsilon", "number"),
    [
        (4, 2.0, 0.25),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((4, 1.0, 0.0), (16, 2.0, 0.0))),
    ],
)
def test_a_mean_is_held_where_equal_numbers_are_at_an_end_of_their_cell(
    steps: int, epsilon: float, number: float
) -> None:
    """Defect caught: half a cell, the same in every window, was taken as random, and held in 66 to 75 %."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, steps, epsilon)
    rates = mechanism.channel @ np.bincount(mechanism.cells(np.array([number])), minlength=steps)
    draws = np.random.default_rng(17).multinomial(2000, rates, 40)
    found = [estimate_number(each.astype(np.int64), mechanism).mean for each in draws]
    assert sum(each is not None and each.low <= number <= each.high for each in found) >= 36
