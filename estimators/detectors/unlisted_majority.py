"""Whether more than half of the values are not listed, by their randomized reports alone.

Let a report show `other` with probability s if its value is not listed, and r < s if it is. If at most half
of n values are unlisted, the reports that show it are a sum of independent draws with a mean share of at most
m = (r + s) / 2. By Hoeffding's bound a share a > m of them has a probability of at most exp(-n KL(a || m)).

Source: Hoeffding, "Probability inequalities for sums of bounded random variables" (JASA 1963), theorem 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.mechanism import pair_of
from deniable.estimators.mechanisms.traits import QuestionKind


@dataclass(frozen=True)
class OtherSign:
    """How reports show that a value, or that of a field, is not listed.

    Parameters
    ----------
    if_unlisted, if_listed : s and r, P(report shows it) of such a value, in (0, 1), s > r.
    bit : the report is bits, and this one shows it; None if it is a bucket.
    bucket, divisor, modulus : the report b shows it if b // divisor % modulus is `bucket`.
    """

    if_unlisted: float
    if_listed: float
    bit: int | None = None
    bucket: int = 0
    divisor: int = 1
    modulus: int = 1

    def count(self, reports: NDArray[np.unsignedinteger]) -> int:
        """Return how many of n reports show it: buckets, unsigned (n,), or bits, uint8 (n, bytes)."""
        if self.bit is not None:
            return int(np.count_nonzero(reports[:, self.bit >> 3] >> (self.bit & 7) & 1))
        return int(np.count_nonzero(reports // self.divisor % self.modulus == self.bucket))

    def is_majority(self, shown: int, reports: int, rate: float) -> bool:
        """Whether `shown` of n independent reports prove that more than half of the values are unlisted.

        Parameters
        ----------
        shown : reports that show it, in [0, n].
        reports : n, at least 1.
        rate : largest probability of True if at most half are, in (0, 1).
        """
        share, mean = shown / reports, (self.if_unlisted + self.if_listed) / 2
        return share > mean and reports * _divergence(share, mean) >= -math.log(rate)


def other_signs(collection: Collection, *, has_clients: bool) -> list[OtherSign]:
    """Return the signs of unlisted values, of each field; empty if reports show none or are dependent.

    Permanent responses of clients make their reports depend on each other.

    Parameters
    ----------
    collection : any.
    has_clients : whether values may share a client.
    """
    mechanism = collection.mechanism
    if (pair := pair_of(mechanism)) is not None:
        sizes = ((pair.first, pair.second.k), (pair.second, 1))
        return [
            OtherSign(krr.p, krr.q, bucket=krr.k - 1, divisor=divisor, modulus=krr.k)
            for (krr, divisor), field in zip(sizes, collection.fields, strict=True)
            if field.other
        ]
    if not collection.other or (collection.memoize and has_clients):
        return []
    if mechanism.kind is not QuestionKind.VALUES:
        return []
    last = mechanism.domain_size - 1
    if mechanism.is_of_bits:
        return [OtherSign(*mechanism.counter_rates, bit=last)]
    return [OtherSign(*mechanism.counter_rates, bucket=last, modulus=last + 1)]


def _divergence(share: float, mean: float) -> float:
    """KL divergence of two Bernoulli distributions, nats; both in (0, 1), or `share` 1."""
    rest = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - mean))
    return share * math.log(share / mean) + rest
