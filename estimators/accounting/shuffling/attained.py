"""What real data sets attain: a lower bound on epsilon of shuffled k-RR that no valid bound can be below."""

from fractions import Fraction

from deniable.estimators.accounting.shuffling.amplification import least_epsilon
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.traits import ReportAtom


def attained_epsilon(mechanism: KRR, reports: int, delta: float) -> float:
    """Bound from below the epsilon at a delta of one report among n shuffled ones, by two data sets.

    All others hold a third value z (with two values, x'). Then n shuffled reports are as likely as n draws
    of R(z), times the mean over them of R(w | x) / R(w | z), so that delta is the mean of a positive part as
    in `blanket`, with R(w | z) for c. It is exact for these two data sets, and the bound of the blanket is
    close to it, but for two values.

    Parameters
    ----------
    mechanism : KRR, of all reports.
    reports : n, in [1, 10^12].
    delta : in [1e-100, 1).

    Returns
    -------
    Nats, rounded down; 0 if nothing can be said.
    """
    k, truth = mechanism.k, Fraction(mechanism.threshold, WORDS)
    lie = (1 - truth) / (k - 1)
    odds, one = truth / lie, Fraction(1)
    if k == 2:
        atoms = [ReportAtom(odds, one, lie), ReportAtom(1 / odds, one, truth)]
    else:
        atoms = [
            ReportAtom(odds, one, lie),
            ReportAtom(one, odds, lie),
            ReportAtom(one, one, (k - 3) * lie),
            ReportAtom(1 / odds, 1 / odds, truth),
        ]
    # Multiply-shift moves less than k 2^-65 of each report's probability.
    moved = (1 + float(odds)) * reports * k * 2.0**-64
    if delta + moved >= 1:
        return 0.0
    found = tuple(atom for atom in atoms if atom.mass)
    return least_epsilon(found, reports, delta + moved, mechanism.epsilon).low
