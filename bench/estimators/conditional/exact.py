"""Coverage by summation, of every number of clients who hold a value: k-RR, and bits of RAPPOR."""

import numpy as np

from bench.estimators.conditional.judging import MOST_MISSED, Judged, Verdict
from bench.estimators.coverage import coverage, log_factorials
from estimators.frequency.inversion import Inversion

#: Clients who hold a value, beside as many who do not: few, and shares of all.
FEW = (0, 1, 2, 3, 5, 8, 13, 25, 50)
PARTS = (0.1, 0.25, 0.5)


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
