"""Longitudinal k-RR (L-GRR): a memoized permanent k-RR, then an instantaneous k-RR for each report."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from deniable.estimators.mechanisms.directed_rounding import exp_below, log_above
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON, WORDS, commonest, least_threshold, rarest
from deniable.estimators.mechanisms.traits import SymmetricMechanism


@dataclass(frozen=True)
class LongitudinalKRR(SymmetricMechanism):
    """The channel from a true value, through its permanent response, to one report.

    The composition of two symmetric channels is symmetric. `p` and `q` are those of the composition, so all
    k-RR estimators, the exact maximum likelihood included, apply unchanged.

    Parameters
    ----------
    permanent : KRR from the true value to the response that a client memoizes.
    instantaneous : KRR from that response to a report, with fresh randomness for each report; of the same k.

    Raises
    ------
    ValueError if the two differ in k.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 3, with k-RR in place of bits; Arcolezi
    et al., "Improving the utility of locally differentially private protocols for longitudinal and
    multidimensional frequency estimates" (Digital Communications and Networks, 2022), L-GRR.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "k-rr-longitudinal"
    title: ClassVar[str] = "longitudinal k-RR"
    wire_number = 3
    keeps_permanent = True
    always_memoizes = True
    repeats_noise = True

    permanent: KRR
    instantaneous: KRR

    def __post_init__(self) -> None:
        if self.permanent.k != self.instantaneous.k:
            raise ValueError(
                f"permanent and instantaneous must have the same k,"
                f" got {self.permanent.k} and {self.instantaneous.k}"
            )

    @classmethod
    def from_epsilons(cls, k: int, epsilon_inf: float, epsilon_one: float) -> Self:
        """Build the pair with the largest p1, then the largest p2, that exceeds neither epsilon.

        Parameters
        ----------
        k : number of values, in [2, 2^31].
        epsilon_inf : privacy loss of all reports of one true value together, nats, in (0, 16].
        epsilon_one : privacy loss of one report, nats, in (0, epsilon_inf).

        Raises
        ------
        ValueError if a parameter is out of range, or an epsilon is too small for 64-bit words.
        """
        if not 0 < epsilon_inf <= LARGEST_EPSILON:
            raise ValueError(f"epsilon_inf must be in (0, {LARGEST_EPSILON}], got {epsilon_inf}")
        permanent = KRR.from_epsilon(k, epsilon_inf)
        if not 0 < epsilon_one < epsilon_inf:
            raise ValueError(f"epsilon_one must be in (0, epsilon_inf = {epsilon_inf}), got {epsilon_one}")
        # (a + b t) / (c - d t) <= e^epsilon_one, solved for t, the probability of the instantaneous truth.
        a, b, c, d = _extremes(permanent)
        bound = exp_below(epsilon_one)
        threshold = int(WORDS * (bound * c - a) / (b + bound * d))
        least = least_threshold(k)
        if threshold < least:
            smallest = cls(permanent, KRR(k, least)).epsilon_one
            raise ValueError(
                f"epsilon_one must be in [{smallest}, {epsilon_inf}) for k = {k}, got {epsilon_one}"
            )
        return cls(permanent, KRR(k, min(threshold, WORDS - 1)))

    @property
    def k(self) -> int:
        """Number of values."""
        return self.permanent.k

    @cached_property
    def p(self) -> float:
        """P(report v | truth v) = p1 p2 + (k - 1) q1 q2, in (1/k, 1)."""
        return float(self._other + self._contrast)

    @cached_property
    def q(self) -> float:
        """Mean of P(report v | truth w) over the k - 1 values w != v: (1 - p) / (k - 1)."""
        return float(self._other)

    @cached_property
    def contrast(self) -> float:
        """Difference p - q = (p1 - q1)(p2 - q2), rounded once, > 0."""
        return float(self._contrast)

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of the permanent response, so of any number of reports from it; nats, rounded up."""
        return self.permanent.epsilon

    @cached_property
    def epsilon_one(self) -> float:
        """Upper bound on the privacy loss of one report, nats; within 2^-30 of the exact loss for any k.

        At most `epsilon_inf`, because a report depends on the true value only through the permanent response.
        """
        a, b, c, d = _extremes(self.permanent)
        truth = Fraction(self.instantaneous.threshold, WORDS)
        return min(log_above((a + b * truth) / (c - d * truth)), self.epsilon_inf)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats: `epsilon_one`."""
        return self.epsilon_one

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon of one report, see `Traits`."""
        return self.from_epsilons(self.k, self.epsilon_inf, epsilon)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "k": self.k,
            "permanent_threshold": self.permanent.threshold,
            "instantaneous_threshold": self.instantaneous.threshold,
        }

    @property
    def _contrast(self) -> Fraction:
        first, second = self.permanent, self.instantaneous
        product = (self.k * first.threshold - WORDS) * (self.k * second.threshold - WORDS)
        return Fraction(product, (WORDS * (self.k - 1)) ** 2)

    @property
    def _other(self) -> Fraction:
        """Exact q, from k q + (p - q) = 1."""
        return (1 - self._contrast) / self.k


def _extremes(permanent: KRR) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return a, b, c, d with c - d t <= P(any report | any truth) <= a + b t, t the instantaneous step's p.

    Multiply-shift gives each of the k - 1 other values a share in [r, s] of the words. Let p be the
    permanent step's P(truth). Upper bound: P(v | v) <= p t + (1 - p)(1 - t) s, and it bounds every P(v | w)
    too, because p and t exceed the probability of any other value. Lower bound: P(v | w) is least when all
    shares are r. The permanent response is then v with probability u = (1 - p) r, and
    P(v | w) = u t + (1 - u)(1 - t) r.
    """
    truth = Fraction(permanent.threshold, WORDS)
    r, s = (Fraction(words(permanent.k), WORDS) for words in (rarest, commonest))
    u = (1 - truth) * r
    return (1 - truth) * s, truth - (1 - truth) * s, (1 - u) * r, (1 - u) * r - u
