"""Effect of forged reports on an estimate, compared with the formula, and the detectors that see them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from bench.estimators.populations import round_to_counts, zipf_shares
from bench.poisoning.forgeries import (
    KRR_FORGERS,
    RAPPOR_FORGERS,
    RapporWindow,
    krr_bias,
    krr_window,
    rappor_bias,
    rappor_window,
)
from bench.sections import ResultRow, Section
from deniable.estimators.decoding.bit_counts import BitCounts
from deniable.estimators.decoding.bloom import decode
from deniable.estimators.decoding.design import bloom_design, even_column
from deniable.estimators.decoding.sandwich_errors import fit
from deniable.estimators.detectors.forgery import (
    change_p_value,
    change_p_values,
    cohort_p_value,
    impossible_p_values,
    popcount_p_value,
)
from deniable.estimators.frequency import krr as krr_estimate
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor

VALUES = 20
REPORTS = 100_000
SHARES = (0.0, 0.01, 0.05, 0.1)
PACK_REPORTS = 1000
RATE = 0.01  # maximum false alarms of each detector and window
KRR_WINDOWS = 1000
RAPPOR_WINDOWS = 20
KRR_MECHANISM = KRR.from_epsilon(VALUES, 2.0)
RAPPOR_MECHANISM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
WORDS = [f"word-{number}" for number in range(VALUES)]
TARGET = VALUES - 1  # the rarest value
HONEST = zipf_shares(VALUES, 1.0)
THETA = float(HONEST[TARGET])
DETECTORS = ("popcounts", "cohorts", "impossible", "change")


@dataclass(frozen=True)
class PoisoningRow:
    """One forger and share of forged reports; figures are fractions of all reports, or of windows.

    Parameters
    ----------
    formula, measured, error : bias of the unconstrained estimate, expected, measured and its standard error.
    published : bias of the published estimate, `mle`.
    alarms : share of windows with an alarm by detector; None where it does not apply.
    """

    mechanism: str
    forger: str
    share: float
    formula: float
    measured: float
    error: float
    published: float
    alarms: dict[str, float | None]

    def shown(self) -> ResultRow:
        """Row of the table; a formula or a detector that does not apply is left out."""
        alarms = {name: "" if each is None else f"{each:.0%}" for name, each in self.alarms.items()}
        return {
            "mechanism": self.mechanism,
            "forger": self.forger,
            "forged": f"{self.share:.0%}",
            "bias, formula": "" if math.isnan(self.formula) else f"{100 * self.formula:+.2f} %",
            "measured": f"{100 * self.measured:+.2f} ± {100 * self.error:.2f} %",
            "published": f"{100 * self.published:+.2f} %",
            **alarms,
        }


def about() -> str:
    """What was done."""
    mechanism = RAPPOR_MECHANISM
    return (
        f"{REPORTS:,} reports a window, of {VALUES} values by Zipf 1; the target is the rarest "
        f"({THETA:.2%} of honest clients). k-RR: epsilon 2, {KRR_WINDOWS} windows a row. RAPPOR: "
        f"{mechanism.bits} bits, {mechanism.hashes} hashes, {mechanism.cohorts} cohorts, f {mechanism.f:g}, "
        f"p {mechanism.p:g}, q {mechanism.q:g}, {RAPPOR_WINDOWS} windows a row. Packs of {PACK_REPORTS}, the "
        f"forger's by themselves. Each detector alarms in at most {RATE:.0%} of honest windows; `change` "
        f"compares with an honest window."
    )


def krr_row(rng: np.random.Generator, forger: str, share: float, windows: int = KRR_WINDOWS) -> PoisoningRow:
    """A row of k-RR windows."""
    forged, truth = _split(share)
    before = round_to_counts(HONEST, REPORTS)

    def judged(_: int) -> tuple[float, float, list[float]]:
        counts = krr_window(rng, truth, forged, forger, TARGET, KRR_MECHANISM)
        honest = krr_window(rng, before, 0, forger, TARGET, KRR_MECHANISM)
        reports = np.array(REPORTS)
        impossible = impossible_p_values(counts, reports, KRR_MECHANISM.p, KRR_MECHANISM.q)
        alarms = [VALUES * float(impossible.min()), change_p_value(honest, counts)]
        found, published = (
            float(estimator(counts, KRR_MECHANISM)[TARGET])
            for estimator in (krr_estimate.inv, krr_estimate.mle)
        )
        return found, published, alarms

    formula = krr_bias(share, THETA, forger, KRR_MECHANISM)
    return _row("k-RR", forger, share, formula, map(judged, range(windows)))


def rappor_row(
    rng: np.random.Generator, forger: str, share: float, windows: int = RAPPOR_WINDOWS
) -> PoisoningRow:
    """A row of RAPPOR windows."""
    forged, truth = _split(share)

    def judged(number: int) -> tuple[float, float, list[float]]:
        window = rappor_window(rng, WORDS, truth, forged, forger, TARGET, RAPPOR_MECHANISM)
        estimate = decode(window.counts, window.cohort_sizes, WORDS, RAPPOR_MECHANISM).frequency
        alarms = _rappor_p_values(window, _window_before(number))
        return _least_squares(window, estimate), float(estimate[TARGET]), alarms

    formula = rappor_bias(share, THETA, forger, RAPPOR_MECHANISM)
    return _row("RAPPOR", forger, share, formula, map(judged, range(windows)))


@cache
def _window_before(number: int) -> RapporWindow:
    """An honest window; all rows share those before the window of interest."""
    rng = np.random.default_rng([2, number])
    return rappor_window(rng, WORDS, round_to_counts(HONEST, REPORTS), 0, "follows", TARGET, RAPPOR_MECHANISM)


def _rappor_p_values(window: RapporWindow, honest: RapporWindow) -> list[float]:
    mechanism, sizes = RAPPOR_MECHANISM, window.cohort_sizes
    packs = [
        part[first : first + PACK_REPORTS]
        for part in (window.honest, window.forged)
        for first in range(0, len(part), PACK_REPORTS)
    ]
    popcounts = len(packs) * min(popcount_p_value(pack, mechanism) for pack in packs)
    impossible = impossible_p_values(window.counts, sizes[:, None], mechanism.q_star, mechanism.p_star)
    change = change_p_values(honest.counts, honest.cohort_sizes, window.counts, sizes)
    bits = impossible.size
    return [popcounts, cohort_p_value(sizes), bits * impossible.min(), bits * change.min()]


def _least_squares(window: RapporWindow, theta: NDArray[np.float64]) -> float:
    """The target's unconstrained estimate, with a background."""
    design = bloom_design(WORDS, RAPPOR_MECHANISM)
    even = even_column(design.shape[0], RAPPOR_MECHANISM.hashes / RAPPOR_MECHANISM.bits)
    counts = BitCounts(window.counts, window.cohort_sizes, RAPPOR_MECHANISM)
    model = hstack([design, even], format="csc")
    rest = max(0.0, 1 - float(theta.sum()))
    return float(fit(counts, model, np.append(theta, rest)).estimate[TARGET])


def _split(share: float) -> tuple[int, NDArray[np.int64]]:
    """Forged reports, and honest clients by value."""
    forged = round(share * REPORTS)
    return forged, round_to_counts(HONEST, REPORTS - forged)


def _row(
    name: str, forger: str, share: float, formula: float, windows: Iterable[tuple[float, float, list[float]]]
) -> PoisoningRow:
    """Means over windows: of both estimates of the target, and of alarms of the last detectors."""
    found, published, p_values = zip(*windows, strict=True)
    error = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    measured, shown = (float(np.mean(each)) - THETA for each in (found, published))
    alarms = np.mean(np.array(p_values) <= RATE, axis=0).tolist()
    applied: list[float | None] = [None] * (len(DETECTORS) - len(alarms))
    by_detector = dict(zip(DETECTORS, applied + alarms, strict=True))
    return PoisoningRow(
        name, forger if share else "nobody", share, formula, measured, error, shown, by_detector
    )


def poisoning() -> Section:
    """Simulate all forgers; a bias that is off by 5 standard errors is missed."""
    rng = np.random.default_rng(1)
    rows = [krr_row(rng, KRR_FORGERS[0], 0.0), rappor_row(rng, RAPPOR_FORGERS[0], 0.0)]
    rows += [krr_row(rng, forger, share) for forger in KRR_FORGERS for share in SHARES[1:]]
    rows += [rappor_row(rng, forger, share) for forger in RAPPOR_FORGERS for share in SHARES[1:]]
    missed = [
        f"the bias by {row.forger} of {row.share:.0%} is not that of the formula"
        for row in rows
        if abs(row.measured - row.formula) > 5 * row.error
    ]
    return Section(about(), [row.shown() for row in rows], missed=missed)


CASES = {"poisoning": poisoning}
