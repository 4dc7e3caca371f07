"""Intervals for all values and for every look: coverage beside that of single values and single looks.

Simulated from counts of k-RR reports.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import report_counts, round_to_counts, zipf_shares
from bench.sections import ResultRow, Section, percent
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.intervals.confidence_sequence import (
    ReportSteps,
    mean_over_windows,
    sequence_of_any,
    sequence_of_independent,
)
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.krr import estimate
from deniable.estimators.mechanisms.krr import KRR

ALPHA, LEAST_COVERED = 0.05, 93.0
RUNS = 1000
LOOKS = (1, 20, 100, 500)
POPULATIONS = tuple(product((2, 10, 100), (10_000, 1_000_000), (1.0, 4.0), (0.01, 1.3)))


def together(
    rng: np.random.Generator, values: int, reports: int, epsilon: float, exponent: float, runs: int
) -> ResultRow:
    """Percent of runs in which all values are covered, by single intervals and by those for all values."""
    mechanism = KRR.from_epsilon(values, epsilon)
    truth = round_to_counts(zipf_shares(values, exponent), reports)
    share, hits = truth / reports, np.zeros(2)
    for _ in range(runs):
        found = estimate(report_counts(rng, truth, mechanism), mechanism)
        assert found.for_all is not None  # noqa: S101 - for mypy
        for place, (low, high) in enumerate(
            ((found.low, found.high), (found.for_all.low, found.for_all.high))
        ):
            hits[place] += bool(((low <= share) & (share <= high)).all())
    single, for_all = (percent(each) for each in hits / runs)
    return {
        "K": values,
        "N": reports,
        "epsilon": epsilon,
        "Zipf": f"{exponent:g}",
        "95 % of each": single,
        "for all values": for_all,
    }


def sequences(rng: np.random.Generator, runs: int, *, returning: bool) -> ResultRow:
    """Coverage at every look of 500 windows of 10,000 reports, 10 values, epsilon 1.

    Shares go up and down by a half over the windows if clients are new in each. Otherwise the same clients
    return with the same permanent responses of epsilon 2, reported with epsilon 2 again.
    """
    windows, reports = LOOKS[-1], 10_000
    mechanism = KRR.from_epsilon(10, 2.0 if returning else 1.0)
    channel, base = Inversion.of_symmetric(mechanism), zipf_shares(10, 1.0)
    wave = np.sin(np.arange(windows) / 25) * (0 if returning else base[-1] / 2)
    truth = np.array([round_to_counts(base + each * np.array([1] * 5 + [-1] * 5), reports) for each in wave])
    share, weights = truth / reports, np.full(windows, float(reports))
    true_mean = mean_over_windows(share, weights)
    covered, widths = np.zeros(4), np.zeros((2, len(LOOKS)))
    looks = np.array(LOOKS) - 1
    steps = ReportSteps(1 / channel.contrast ** (2 if returning else 1), 0 if returning else channel.slope)
    for _ in range(runs):
        counts = _returning(rng, truth[0], mechanism, windows) if returning else _fresh(rng, truth, mechanism)
        x = channel.frequency(counts / reports)
        error = channel.std_error(x, reports)
        if returning:
            x = channel.frequency(x)
            error = np.broadcast_to(error.mean() * np.hypot(1, 1 / mechanism.contrast), x.shape)
        of = sequence_of_any if returning else sequence_of_independent
        mean = mean_over_windows(x, weights)
        noise = np.sqrt(np.cumsum((error * reports) ** 2, axis=0)) / np.cumsum(weights)[:, None]
        fixed = QUANTILE_975 * (mean_over_windows(error, weights) if returning else noise)
        single, every = (of(x, error, weights, level, steps) for level in (ALPHA, ALPHA / 10))
        within = (np.abs(mean - true_mean) <= fixed).all(axis=0)
        held = ((single.low <= true_mean) & (true_mean <= single.high)).all(axis=0)
        all_held = bool(((every.low <= true_mean) & (true_mean <= every.high)).all())
        covered += np.array([within.mean(), within.all(), held.mean(), all_held], np.float64)
        widths += [fixed[looks, 0] * 2, (single.high - single.low)[looks, 0]]
    names = ("fixed-time, a value", "fixed-time, all values", "sequence, a value", "sequences, all values")
    ratios = zip(LOOKS, widths[1] / widths[0], strict=True)
    return {
        "windows": "the same clients" if returning else "new clients, shares that vary",
        **dict(zip(names, map(percent, covered / runs), strict=True)),
        **{f"width at {look}": f"{ratio:.2f}" for look, ratio in ratios},
    }


def _fresh(rng: np.random.Generator, truth: NDArray[np.int64], mechanism: KRR) -> NDArray[np.int64]:
    """Reports of each window, int64 (windows, k)."""
    kept = rng.binomial(truth, mechanism.contrast)
    rest = (truth - kept).sum(axis=1)
    return kept + rng.multinomial(rest, np.full(mechanism.k, 1 / mechanism.k))


def _returning(
    rng: np.random.Generator, truth: NDArray[np.int64], mechanism: KRR, windows: int
) -> NDArray[np.int64]:
    """Reports of clients who keep their permanent response in all windows."""
    permanent = report_counts(rng, truth, mechanism)
    return _fresh(rng, np.repeat(permanent[None], windows, axis=0), mechanism)


def all_at_once(runs: int = RUNS) -> Section:
    """Judge intervals for all values of single windows."""
    rng = np.random.default_rng(1)
    return judged("Percent of runs.", [together(rng, *each, runs) for each in POPULATIONS], "for all values")


def every_look(runs: int = RUNS) -> Section:
    """Judge sequences of many windows."""
    rng = np.random.default_rng(1)
    rows = [sequences(rng, runs, returning=returning) for returning in (False, True)]
    about = f"At every look of {LOOKS[-1]}, percent of runs; widths over those of fixed-time intervals."
    return judged(about, rows, "sequence, a value")


def judged(about: str, rows: list[ResultRow], column: str) -> Section:
    """Miss each row whose percentage is below 93."""
    low = [" ".join(map(str, row.values())) for row in rows if float(row[column]) < LEAST_COVERED]
    return Section(about, rows, missed=[f"{column}, below {LEAST_COVERED:g} %: {each}" for each in low])


CASES = {"all values at once": all_at_once, "at every look": every_look}
