"""Longitudinal k-RR: a permanent k-RR, remembered, then an instantaneous one for each report."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from estimators.mechanisms.channels import SymmetricMechanism
from estimators.mechanisms.directed_rounding import exp_below, log_above
from estimators.mechanisms.krr import KRR, LARGEST_EPSILON, WORDS, commonest, least_threshold, rarest


@dataclass(frozen=True)
class LongitudinalKRR(SymmetricMechanism):
    """The channel from a true value, through its permanent response, to one report.

    Two symmetric channels in a row are a symmetric channel: `p` and `q` are those of both together, so that
    the estimators of k-RR, the exact maximum likelihood included, apply as they are.

    Parameters
    ----------
    permanent : KRR from the true value to the response that a client remembers and repeats.
    instantaneous : KRR from that response to a report, run anew for each; of the same k.

    Raises
    ------
    ValueError if the two differ in k.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 3, with k-RR in place of bits; Arcolezi
    et al., "Improving the utility of locally differentially private protocols for longitudinal and
    multidimensional frequency estimates" (Digital Communications and Networks, 2022), L-GRR.
    """

    #: What the collection file calls it.
    name: ClassVar[str] = "k-rr-longitudinal"

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
        """Build the most truthful pair that keeps both epsilons.

        Parameters
        ----------
        k : number of values, in [2, 2^31].
        epsilon_inf : privacy loss of all reports of one true value together, in (0, 16].
        epsilon_one : privacy loss of one report, in (0, epsilon_inf).

        Raises
        ------
        ValueError if a parameter is out of range, or an epsilon so small that 64-bit words cannot realise it.
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
        """P(report v | truth v) = p1 p2 + (k - 1) q1 q2."""
        return float(self._other + self._contrast)

    @cached_property
    def q(self) -> float:
        """P(report v | truth w), w != v, averaged over w: (1 - p) / (k - 1)."""
        return float(self._other)

    @cached_property
    def contrast(self) -> float:
        """The difference p - q = (p1 - q1)(p2 - q2), rounded once."""
        return float(self._contrast)

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of the permanent response, so of all reports made from it, rounded up."""
        return self.permanent.epsilon

    @cached_property
    def epsilon_one(self) -> float:
        """Privacy loss of one report, rounded up: an upper bound, within 2^-30 of the truth for any k.

        What is reported depends on the true value through the permanent response only, so it is never above
        `epsilon_inf`.
        """
        a, b, c, d = _extremes(self.permanent)
        truth = Fraction(self.instantaneous.threshold, WORDS)
        return min(log_above((a + b * truth) / (c - d * truth)), self.epsilon_inf)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report: `epsilon_one`."""
        return self.epsilon_one

    def parameters(self) -> dict[str, int | str]:
        """All that changes what a report means, exact: what a collection's fingerprint is made of."""
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
        """Exact q: of the probability 1, k shares q and one contrast are made."""
        return (1 - self._contrast) / self.k


def _extremes(permanent: KRR) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Bound one report by the truth t of the instantaneous step: a + b t from above, c - d t from below.

    Multiply-shift gives the k - 1 other values shares between r and s of the words. With p the truth of the
    permanent step, no report v is likelier than p t + (1 - p)(1 - t) s, which bounds P(v | v), and, p and t
    being above any lie, every P(v | w) too. None is rarer than P(v | w) with all shares r: the permanent
    response is v with probability u = (1 - p) r, else v comes by a lie, together u t + (1 - u)(1 - t) r.
    """
    truth = Fraction(permanent.threshold, WORDS)
    r, s = (Fraction(words(permanent.k), WORDS) for words in (rarest, commonest))
    u = (1 - truth) * r
    return (1 - truth) * s, truth - (1 - truth) * s, (1 - u) * r, (1 - u) * r - u
