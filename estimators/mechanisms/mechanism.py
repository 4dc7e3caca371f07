"""The mechanisms that a collection can have, and each of them at another epsilon."""

import math
from dataclasses import replace

from estimators.mechanisms.krr import KRR
from estimators.mechanisms.krr import LARGEST_EPSILON as LARGEST_KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_bits import TwoStepBits, round_to_thresholds
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.rappor_parameters import LARGEST_EPSILON as LARGEST_RAPPOR
from estimators.mechanisms.rappor_parameters import choose_thresholds

Mechanism = KRR | LongitudinalKRR | Rappor | HotRappor

LEAST = 0.1
MOST = 10.0
#: One report costs at most this share of what all from one permanent response do: at 1 none would differ.
SHARE_OF_PERMANENT = 0.99


def epsilon_range(mechanism: Mechanism) -> tuple[float, float]:
    """Tell the least and the largest epsilon of one report that `at_epsilon` takes.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.

    Returns
    -------
    Nats: 0.1 and 10, or the mechanism's own where that lies beyond, but no more than 99 % of what its
    permanent response costs.
    """
    own = mechanism.epsilon
    if isinstance(mechanism, KRR):
        return min(LEAST, own), min(max(MOST, own), LARGEST_KRR)
    permanent = SHARE_OF_PERMANENT * min(mechanism.epsilon_inf, LARGEST_RAPPOR)
    return min(LEAST, own, permanent), min(max(MOST, own), permanent)


def at_epsilon(mechanism: Mechanism, epsilon: float) -> Mechanism:
    """Build the mechanism of least error whose reports cost at most this, all else being as it is.

    Values, bits, hashes and cohorts stay, and so does what a permanent response costs. That of least error:
    the one given need not be, since a RAPPOR's p and q may be any.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.
    epsilon : privacy loss of one report, within `epsilon_range`.

    Returns
    -------
    A mechanism of the same class.

    Raises
    ------
    ValueError if epsilon is out of range.

    Source: `choose_thresholds`; Wang et al., "Locally differentially private protocols for frequency
    estimation" (USENIX Security 2017), section 4.3, for bits without a permanent response.
    """
    least, most = epsilon_range(mechanism)
    if not least <= epsilon <= most:
        raise ValueError(f"epsilon must be in [{least:.4g}, {most:.4g}], got {epsilon}")
    match mechanism:
        case KRR():
            return KRR.from_epsilon(mechanism.k, epsilon)
        case LongitudinalKRR():
            return LongitudinalKRR.from_epsilons(mechanism.k, mechanism.epsilon_inf, epsilon)
        case _:
            flip, p, q = _thresholds(mechanism, epsilon)
            return replace(mechanism, flip_threshold=flip, p_threshold=p, q_threshold=q)


def _thresholds(mechanism: TwoStepBits, epsilon: float) -> tuple[int, int, int]:
    if mechanism.flip_threshold == 0:
        return round_to_thresholds(0.0, 1 / (math.exp(epsilon / mechanism.ones) + 1), 0.5)
    return choose_thresholds(mechanism.ones, min(mechanism.epsilon_inf, LARGEST_RAPPOR), epsilon)
