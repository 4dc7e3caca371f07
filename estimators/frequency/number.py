"""The distribution of a number from Square Wave reports: histogram, mean and quantiles, with intervals."""

import math

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import (
    QUANTILE_975,
    Estimate,
    QuantileEstimate,
    ScalarEstimate,
    count_reports,
)
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.numbers.noise import NumberNoise, noise_of
from deniable.estimators.frequency.numbers.quantiles import possible_cells
from deniable.estimators.frequency.numbers.smoothed_em import (
    onto_truth,
    report_rates,
    sensitivity,
    smoothed_em,
    smoothing_weight,
)
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.square_wave import SquareWave

#: Quantiles of every estimate; others follow from its frequencies.
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_PLANNED_STEPS = 64
# How much less the intervals' step smooths than the estimate, over the root of the reports: of as many at
# least, since of fewer what is left of the smoothing would be a bias of jagged distributions.
_LESS_SMOOTHING, _LEAST_ROOT = 30.0, 300.0
_LARGEST_OFFSET = 5.0  # standard deviations of a mean of numbers in their cells
_QUANTILE_95 = 1.6448536269514722


def estimate_number(counts: NDArray[np.int64], mechanism: SquareWave) -> Estimate:
    """Estimate the histogram, mean and quantiles of the true numbers by EM with smoothing.

    Point estimates are those of the smoothed histogram, theta, with the numbers of a cell spread evenly over
    it. Smoothing biases them towards flatter distributions: they are best for smooth ones. Intervals hold for
    jagged ones, too, and are as wide as that takes. Those of frequencies and of the mean are around theta
    plus one step of EM with hardly any smoothing, linear in what the reports differ from those expected under
    theta, so little of the bias remains. The variance is that of the delta method, for fixed true numbers,
    over the noise alone. Where a report is the true cell or any other, intervals are around the inversion.

    Frequencies are of the rows of `SquareWave.row_edges`, each the sum of its cells, with the interval of
    that sum. What single cells hold cannot be found from such reports: theta is `density`, without intervals.

    The error of the mean has another part, for where in their cells numbers are (`_unknown_places`).

    The interval of a quantile has all cells that a likelihood ratio test does not reject (`quantile_cells`),
    so it holds the quantile of the numbers themselves, and is at least a cell wide. The test allows any
    distribution. That none of its cells is negative says more than smoothness could, of jagged ones, too.

    Parameters
    ----------
    counts : int64 array (d + 2b,), reports per reported cell.
    mechanism : SquareWave of the reports.

    Returns
    -------
    Estimate with arrays of shape (rows,), fractions of all reports, with `density`, float64 (d,), and with
    `mean` and `quantiles` in units of the number. The diagnostic `change` is what another step of the method
    would change, `bias` the sum of the absolute differences between frequencies and what their intervals are
    around: noise, and the bias of smoothing.

    Raises
    ------
    ValueError if counts is not of shape (d + 2b,), negative or all 0.

    Source: Li et al. (SIGMOD 2020), section 5.5, for EM with smoothing.
    """
    reports = count_reports(counts, mechanism.width)
    shares = counts / reports
    weight = smoothing_weight(reports, mechanism)
    found = smoothed_em(shares, mechanism, weight)
    first = found.frequency
    truth, corrected, effect = _hardly_smoothed(shares, first, weight, reports, mechanism)
    frequency, sums = row_sums(first, mechanism), row_sums(corrected, mechanism)
    noise = NumberNoise.of(row_sums(effect, mechanism), truth, reports, mechanism)
    low, high, for_all = shown_intervals(lambda level: noise.interval(sums, level), frequency)
    found_cells = possible_cells(counts.astype(np.float64), first, mechanism, LEVELS)
    centres = (np.arange(mechanism.steps) + 0.5) / mechanism.steps
    of_mean = NumberNoise.of((centres @ effect)[None], truth, reports, mechanism)
    places = _unknown_places(corrected, effect, truth, reports, mechanism)
    return Estimate(
        estimator="ems",
        reports=reports,
        frequency=frequency,
        std_error=noise.std_error,
        low=low,
        high=high,
        significant=benjamini_hochberg(normal_tail(noise.excess(sums))),
        diagnostics={"change": found.change, "bias": float(np.abs(sums - frequency).sum())},
        mean=_mean(float(centres @ first), float(centres @ corrected), of_mean, places, mechanism),
        quantiles=tuple(
            _quantile(level, first, cells, mechanism)
            for level, cells in zip(LEVELS, found_cells, strict=True)
        ),
        for_all=for_all,
        density=first,
    )


def _hardly_smoothed(
    shares: FloatArray, first: FloatArray, weight: float, reports: int, mechanism: SquareWave
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what intervals are around, and its derivative by the shares of the reports.

    With near bands of one cell, the channel is that of k-RR, and its inversion has hardly more noise than a
    step of EM. Where hardly a report is false, a step from a smoothed histogram would miss atoms by more.

    Returns
    -------
    Shares of the cells for the noise, >= 0; shares, hardly smoothed, float64 arrays (d,); and the derivative,
    float64 array (d, d + 2b).
    """
    if mechanism.near == 1:
        inverted = (shares - mechanism.q) / mechanism.contrast
        truth = np.maximum(inverted, 0)
        return truth / truth.sum(), inverted, np.eye(mechanism.steps) / mechanism.contrast
    expected = report_rates(first, mechanism)
    less = _LESS_SMOOTHING * max(math.sqrt(reports), _LEAST_ROOT)
    step = sensitivity(first, expected, mechanism, weight / less)
    corrected = first + step @ (shares - expected)
    effect = sensitivity(first, shares, mechanism, weight)
    return first, corrected, step + effect - onto_truth(step, mechanism) @ effect


def unbiased_mean(counts: NDArray[np.int64], mechanism: SquareWave) -> tuple[float, float]:
    """Estimate the mean by linear inversion: for averages over windows, and to find changes of the mean.

    It is the mean of `SquareWave.scores`. Its error is larger than that of `estimate_number`, which has a
    bias from smoothing instead.

    Parameters
    ----------
    counts : int64 array (d + 2b,), reports per reported cell.
    mechanism : SquareWave of the reports.

    Returns
    -------
    The mean of the numbers, each at the middle of its cell, and its standard error, >= 0: of noise, and of
    whose numbers are reported if clients are drawn from a population. Both in units of the number; the mean
    may be beyond the range.

    Raises
    ------
    ValueError if counts is not of shape (d + 2b,), negative or all 0.
    """
    reports = count_reports(counts, mechanism.width)
    scores = mechanism.scores
    mean = float(counts @ scores) / reports
    variance = float(counts @ (scores - mean) ** 2) / reports
    units = mechanism.maximum - mechanism.minimum
    return mechanism.minimum + mean * units, math.sqrt(variance / reports) * units


def row_sums(cells: FloatArray, mechanism: SquareWave) -> FloatArray:
    """Sum over the cells of each row of `SquareWave.row_edges`, along the first axis.

    Parameters
    ----------
    cells : float64 array (d, ...).
    mechanism : SquareWave with these cells.

    Returns
    -------
    float64 array (rows, ...).
    """
    *first, end = mechanism.row_edges.tolist()
    sums: FloatArray = np.add.reduceat(cells[:end], first, axis=0)
    return sums


def quantile(level: float, frequency: FloatArray, mechanism: SquareWave) -> float:
    """Return the number that a share `level` of a histogram is below.

    Parameters
    ----------
    level : in (0, 1).
    frequency : float64 array (d,), fractions > 0 that sum to 1; the numbers of a cell are spread over it.
    mechanism : SquareWave with these cells.

    Returns
    -------
    A number in [minimum, maximum].
    """
    edges = np.arange(mechanism.steps + 1) / mechanism.steps
    return mechanism.at(float(np.interp(level, np.append(0, frequency.cumsum()), edges)))


def expected_median_error(mechanism: SquareWave, reports: int) -> float:
    """Return the expected standard error of the median of numbers that are spread evenly over the range.

    The delta method, on at most 64 steps with the same smoothing: the error does not depend on the steps.
    Others have another error, by the density at their median, and a bias from smoothing. At epsilons .5, 1, 2
    and 4 and 100,000 reports this is .0146, .0075, .0038 and .0014; mean absolute errors measured with
    Beta(5, 2) are .0060, .0027, .0015 and .0005. Intervals hold for jagged distributions, too, so they are
    wider than this error says: see `expected_median_interval`.

    Parameters
    ----------
    mechanism : SquareWave of the reports.
    reports : N, >= 1.

    Returns
    -------
    Fraction of the range, > 0.
    """
    steps = min(mechanism.steps, _PLANNED_STEPS)
    coarse = SquareWave.from_epsilon(0.0, 1.0, steps, min(mechanism.epsilon, LARGEST_EPSILON))
    weight = smoothing_weight(reports, mechanism) * (steps / mechanism.steps) ** 2
    even = np.full(steps, 1 / steps)
    effect = sensitivity(even, report_rates(even, coarse), coarse, weight)
    return float(noise_of(effect[: steps // 2].sum(axis=0)[None], even, reports, coarse)[0])


def expected_median_interval(mechanism: SquareWave, reports: int) -> float:
    """Return the width of the median's 95 % interval if numbers are spread evenly.

    It is computed of reports without noise; with it most intervals are shorter, and so are those of numbers
    that are denser at their median.

    Parameters
    ----------
    mechanism : SquareWave of the reports.
    reports : N, >= 1.

    Returns
    -------
    Fraction of the range, in (0, 1]; whole cells.
    """
    even = np.full(mechanism.steps, 1 / mechanism.steps)
    counts = reports * report_rates(even, mechanism)
    ((first, last),) = possible_cells(counts, even, mechanism, (0.5,))
    return max(last + 1 - first, 1) / mechanism.steps


def _unknown_places(
    cells: FloatArray, effect: FloatArray, theta: FloatArray, reports: int, mechanism: SquareWave
) -> tuple[float, float]:
    """Standard error and bound of the mean because reports do not say where in its cell a number is.

    Where shares change evenly from cell to cell, the numbers of a cell are taken as spread evenly over it.
    What a cell holds beyond the mean of its two neighbours, e, is taken as equal numbers, anywhere in it. To
    take them as in its middle is an error of variance e^2 / 12, in widths of a cell. A single full cell has e
    = 1 and its neighbours -1/2, hence 2/3 of the sum of e^2. Noise adds its variance to each, which is
    subtracted for the error. In fixed windows the equal numbers may all be at an end of their cell, so the
    bound is e / 2, to which noise is added, and at most half a cell; a full cell at an end has one neighbour,
    so the squares of both ends count 5/4 times. The mean of evenly spread numbers is off by 1 / sqrt(12 N)
    widths of a cell, and that of fixed ones by the same in every window, so 5 of these are covered.

    Parameters
    ----------
    cells : float64 array (d,), estimated shares, hardly smoothed.
    effect : float64 array (d, d + 2b), derivative of `cells` by the shares of the reports.
    theta : float64 array (d,), the estimate, for the noise.
    reports : N, >= 1.
    mechanism : SquareWave of the reports.

    Returns
    -------
    Fractions of the range, > 0; the second at most half a cell.

    Source: Gasser, Sroka, Jennen-Steinmetz, "Residual variance and residual pattern in nonlinear regression"
    (Biometrika 73, 1986), for the sum of squares.
    """
    noise = noise_of(_beyond_neighbours(effect), theta, reports, mechanism)
    beyond = _beyond_neighbours(cells)
    of_all, of_noise = (2 / 3 * float((each**2).sum()) for each in (beyond, noise))
    less = max(0.0, of_all - of_noise) + (_LARGEST_OFFSET / QUANTILE_975) ** 2 / reports
    at_ends = of_all + (beyond[0] ** 2 + beyond[-1] ** 2) / 6
    full = math.sqrt(at_ends) + math.sqrt(of_noise) + _LARGEST_OFFSET / math.sqrt(3 * reports)
    return math.sqrt(less / 12) / mechanism.steps, min(full, 1.0) / 2 / mechanism.steps


def _beyond_neighbours(values: FloatArray) -> FloatArray:
    """Subtract the mean of the two neighbours along the first axis; those at an end have one."""
    around = np.concatenate([values[1:2], values, values[-2:-1]])
    beyond: FloatArray = values - (around[:-2] + around[2:]) / 2
    return beyond


def _mean(
    value: float, middle: float, noise: NumberNoise, places: tuple[float, float], mechanism: SquareWave
) -> ScalarEstimate:
    """Compute in fractions of the range, whose squares neither overflow nor vanish. Return numbers.

    A fixed offset of b beside normal noise of s is outside of max(1.96 s, 1.645 s + b) with at most 6.1 %.
    """
    of_noise, (of_places, offset) = float(noise.std_error[0]), places
    error = math.hypot(of_noise, of_places)
    wide = max(QUANTILE_975 * error, _QUANTILE_95 * of_noise + offset)
    down, up = (wide + each for each in noise.beyond_normal(QUANTILE_975))
    low = min(max(middle - float(down[0]), 0.0), value)
    high = max(min(middle + float(up[0]), 1.0), value)
    units = mechanism.maximum - mechanism.minimum
    return ScalarEstimate(mechanism.at(value), error * units, mechanism.at(low), mechanism.at(high))


def _quantile(
    level: float, first: FloatArray, cells: tuple[int, int], mechanism: SquareWave
) -> QuantileEstimate:
    """Take whole cells: where in its cell a number is, nothing says."""
    value = quantile(level, first, mechanism)
    low, high = mechanism.edges[cells[0]], mechanism.edges[cells[1] + 1]
    return QuantileEstimate(level, value, min(float(low), value), max(float(high), value))
