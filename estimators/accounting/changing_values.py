"""What memoized reports cost whatever the values do: the subject to account, for every kind of memoizing."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.estimators.accounting.changing_buckets import ChangingBuckets, hashed_subject
from deniable.estimators.mechanisms.directed_rounding import product_above
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor_hot import HotRappor


@dataclass(frozen=True)
class ChangingResponses:
    """All reports of a client of memoized RAPPOR, or of repeated answers, if it is known when values change.

    Neighbours are two sequences of values that are equal at the same pairs of times. The permanent responses
    are independent draws, one for each value, so the losses of different values add. Of one value, n reports
    reveal of a differing bit, in either direction, at most F(n a) + F(n b), with a = ln(q / p),
    b = ln((1 - p) / (1 - q)) and F(d) = 2 artanh((1 - f) tanh(d / 2)). F is concave for d >= 0 and 0 at 0, so
    the sum is largest if all n values differ: n times the loss of one report, which it attains. If reports
    repeat one answer to each value, n of one value cost as much as one.

    Without that condition no bound is in sight: that two responses are equal is seen in *all* bits, so their
    number enters, and for ever nothing bounds it.

    Parameters
    ----------
    mechanism : Rappor or HotRappor with f > 0; or one without permanent responses, which repeats its answers.
    values : how many different values a client can have that differ by two bits; None for any number.
    """

    #: As of a mechanism, see `Traits`.
    keeps_permanent: ClassVar[bool] = True
    always_memoizes: ClassVar[bool] = False

    mechanism: Mechanism
    values: int | None

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up."""
        return self.mechanism.epsilon

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of any number of reports, nats, rounded up; inf for any number of values."""
        if self.values is None or not self.mechanism.keeps_permanent:
            return math.inf
        return product_above(self.values, self.mechanism.epsilon_inf)

    def largest_of(self, reports: int) -> float:
        """Return the loss of n reports, nats, rounded up, at delta = 0 and so at every delta.

        Parameters
        ----------
        reports : n, >= 1.
        """
        return min(product_above(reports, self.epsilon), self.epsilon_inf)

    def allowed(self, budget: float) -> int | None:
        """Return the largest number of reports within a budget; None for any number.

        Parameters
        ----------
        budget : epsilon, nats, in (0, inf).
        """
        if self.epsilon_inf <= budget:
            return None
        reports = int(Fraction(budget) / Fraction(self.epsilon))
        return reports if product_above(reports, self.epsilon) <= budget else reports - 1


def changing(
    mechanism: Mechanism, changes: int | None = None
) -> LongitudinalKRR | ChangingBuckets | ChangingResponses:
    """Return what is accounted for memoized reports of one client whose values may change.

    Parameters
    ----------
    mechanism : any; one without a permanent response repeats one answer to each value.
    changes : of LongitudinalHash alone: see `hashed_subject`.

    Raises
    ------
    ValueError if changes is negative.
    """
    match mechanism:
        case LongitudinalHash():
            return hashed_subject(mechanism, changes)
        case LongitudinalKRR():
            return ChangingBuckets(mechanism, mechanism.k)
        case HotRappor(
            hot=1
        ):  # an unlisted value sets no bit: it differs from a listed one in one bit, not two
            return ChangingResponses(mechanism, mechanism.buckets)
        case _:
            return ChangingResponses(mechanism, None)
