"""k-RR and RAPPOR without hashing, one window: a value has a bucket or a bit of its own.

The coverage of a value is a sum, of every number of clients who may hold it, and so is how often one of
all intervals misses, or a bound of that; all else is simulated.
"""

from collections.abc import Iterable

import numpy as np

from bench.estimators.conditional.fixed_clients import VALUES, held, names
from bench.estimators.conditional.judging import MOST_FALSE, MOST_MISSED, Judged, Measured, Run, Verdict
from bench.estimators.conditional.measuring import estimated, window_of
from bench.estimators.coverage import coverage, log_factorials
from bench.estimators.populations import Counts, report_counts, shown_bits
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.intervals.acceptance import level_for_all
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor

#: Clients who hold a value, beside as many who do not: few, and shares of all.
FEW = (0, 1, 2, 3, 5, 8, 13, 25, 50)
PARTS = (0.1, 0.25, 0.5)
#: Buckets that one client of k-hot RAPPOR is in.
HOT = 3


def both_epsilons(epsilon: float) -> tuple[float, float]:
    """Epsilon of all reports of an unchanged value, and of one: twice as much, at most 16, and 15 at most."""
    return min(float(LARGEST_EPSILON), 2 * epsilon), min(epsilon, LARGEST_EPSILON - 1.0)


def bit_probabilities(epsilon: float, ones: int) -> tuple[float, float]:
    """Return p and q of a report of RAPPOR at this epsilon, where a client sets so many bits."""
    p = 1 / (1 + float(np.exp(epsilon / (2 * ones))))
    return p, 1 - p


def k_rr_of(epsilon: float) -> KRR:
    """k-RR of the table's values."""
    return KRR.from_epsilon(VALUES, epsilon)


def longitudinal_of(epsilon: float) -> LongitudinalKRR:
    """Longitudinal k-RR of the table's values."""
    return LongitudinalKRR.from_epsilons(VALUES, *both_epsilons(epsilon))


def hot_of(epsilon: float, hot: int) -> HotRappor:
    """One-hot or k-hot RAPPOR of the table's values, without a permanent step."""
    return HotRappor.from_probabilities(VALUES, hot, 0.0, *bit_probabilities(epsilon, hot))


def clients_in(mechanism: KRR | LongitudinalKRR | HotRappor, population: str, reports: int) -> Counts:
    """Clients in each bucket, int64 (buckets,)."""
    hot = mechanism.hot if isinstance(mechanism, HotRappor) else 1
    truth: Counts = np.minimum(held(population, hot * reports), reports)
    return truth


def krr_run(mechanism: KRR | LongitudinalKRR, population: str, reports: int) -> Run:
    """One window of k-RR, whose last value is `other`."""
    collection = Collection("table", mechanism, names(VALUES - 1), other=True)
    truth = clients_in(mechanism, population, reports)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        window = window_of(report_counts(rng, truth, mechanism))
        return estimated(collection, window, truth / reports, float(truth[-1] / reports))

    return run


def hot_run(mechanism: HotRappor, population: str, reports: int) -> Run:
    """One window of one-hot or k-hot RAPPOR, whose last bucket is `other`."""
    collection = Collection("table", mechanism, names(VALUES - 1), other=True)
    truth = clients_in(mechanism, population, reports)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        window = window_of(shown_bits(rng, truth, reports, mechanism), np.array([reports]))
        return estimated(collection, window, truth / reports, float(truth[-1] / reports))

    return run


def exact_share(channel: Inversion, reports: int) -> Judged:
    """Judge the intervals of single values over all shares that a value may have.

    Parameters
    ----------
    channel : of a value.
    reports : N.
    """
    holders = np.unique([*FEW, *(round(part * reports) for part in PARTS)])
    holders = holders[2 * holders <= reports]
    holders = np.unique([*holders, *(reports - holders)])
    factorials = log_factorials(reports)
    covered = np.array([coverage(held, reports, channel, factorials) for held in holders.tolist()])
    worst = int(covered.argmin())
    verdict = Verdict.FAILED if 1 - covered[worst] > MOST_MISSED else Verdict.HELD
    population = f"{holders[worst]:,} hold it"
    return Judged(population, 0, float(1 - covered[worst]), float(1 - covered.mean()), 0.0, verdict)


def exact_family(
    mechanism: KRR | LongitudinalKRR | HotRappor,
    channel: Inversion,
    populations: Iterable[str],
    reports: int,
    wide: float,
) -> Judged:
    """Judge the intervals of all values at once by how often each of them misses.

    Bits are independent for fixed clients, so how often one of them misses is exact. Of k-RR the sum is a
    bound.

    Parameters
    ----------
    mechanism, channel : of the reports, and of a value.
    populations : names.
    reports : N.
    wide : share of windows in which most intervals are the whole range.
    """
    factorials, level, missed = log_factorials(reports), level_for_all(VALUES), {}
    for population in populations:
        distinct, times = np.unique(clients_in(mechanism, population, reports), return_counts=True)
        covered = [coverage(each, reports, channel, factorials, level) for each in distinct.tolist()]
        if isinstance(mechanism, HotRappor):
            missed[population] = float(1 - np.prod(np.power(covered, times)))
        else:
            missed[population] = float((1 - np.array(covered)) @ times)
    worst = max(missed, key=lambda population: missed[population])
    verdict = Verdict.WIDE if wide > 0.5 else Verdict.HELD
    if missed[worst] > MOST_FALSE:
        verdict = Verdict.FAILED
    return Judged(worst, 0, missed[worst], float(np.mean(list(missed.values()))), wide, verdict)
