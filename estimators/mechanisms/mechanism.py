"""The union of all mechanisms that a collection can use, and how to rebuild one at another epsilon."""

import math
from dataclasses import replace

from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash, best_buckets
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON as LARGEST_KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits, round_to_thresholds
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.rappor_parameters import LARGEST_EPSILON as LARGEST_RAPPOR
from deniable.estimators.mechanisms.rappor_parameters import choose_thresholds
from deniable.estimators.mechanisms.square_wave import SquareWave

#: Without a permanent response: each report is randomized afresh.
OneStep = KRR | LocalHash | PrefixTree | PairKRR | SquareWave
Mechanism = OneStep | LongitudinalKRR | LongitudinalHash | Rappor | HotRappor

LEAST = 0.1
MOST = 10.0
#: Largest epsilon_one / epsilon_inf: at 1 every report would repeat the permanent response.
SHARE_OF_PERMANENT = 0.99


def epsilon_range(mechanism: Mechanism) -> tuple[float, float]:
    """Return the smallest and the largest epsilon of one report that `at_epsilon` accepts.

    Parameters
    ----------
    mechanism : any.

    Returns
    -------
    Nats: 0.1 and 10, widened to include the mechanism's own epsilon, but at most 99 % of its epsilon_inf.
    """
    own = mechanism.epsilon
    if isinstance(mechanism, OneStep):
        return min(LEAST, own), min(max(MOST, own), LARGEST_KRR)
    permanent = SHARE_OF_PERMANENT * min(mechanism.epsilon_inf, LARGEST_RAPPOR)
    return min(LEAST, own, permanent), min(max(MOST, own), permanent)


def at_epsilon(mechanism: Mechanism, epsilon: float) -> Mechanism:
    """Build the mechanism of the same class with the least error at this epsilon per report.

    Values, range, bits, hashes, cohorts and epsilon_inf stay the same; nearly so the number of counters of
    local hashing, and of functions of the longitudinal kind. The fields of a pair keep their parts of
    epsilon. A RAPPOR's p and q and the buckets of local hashing are computed again, so the result can differ
    from the given mechanism even at its own epsilon.

    Parameters
    ----------
    mechanism : any.
    epsilon : privacy loss of one report, nats, within `epsilon_range`.

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
        case LocalHash():
            buckets = best_buckets(epsilon)
            functions = max(block_of(buckets).functions, mechanism.width // buckets)
            return LocalHash.from_epsilon(epsilon, functions, buckets)
        case PrefixTree(lengths, oracle):
            buckets = best_buckets(epsilon)
            functions = max(block_of(buckets).functions, oracle.width // buckets)
            return PrefixTree(lengths, LocalHash.from_epsilon(epsilon, functions, buckets))
        case LongitudinalHash():
            buckets = best_buckets(epsilon)
            least, most = LongitudinalHash.range_of_functions(buckets)
            functions = min(max(least, mechanism.hash_functions), most)
            return LongitudinalHash.from_epsilons(mechanism.epsilon_inf, epsilon, functions, buckets)
        case LongitudinalKRR():
            return LongitudinalKRR.from_epsilons(mechanism.k, mechanism.epsilon_inf, epsilon)
        case PairKRR():
            part = mechanism.first.epsilon / (mechanism.first.epsilon + mechanism.second.epsilon)
            rest = math.nextafter(epsilon - epsilon * part, 0)  # so that rounding cannot raise the sum
            return PairKRR.from_epsilons(*mechanism.shape, epsilon * part, rest)
        case SquareWave(minimum, maximum, steps):
            return SquareWave.from_epsilon(minimum, maximum, steps, epsilon)
        case _:
            flip, p, q = _thresholds(mechanism, epsilon)
            return replace(mechanism, flip_threshold=flip, p_threshold=p, q_threshold=q)


def _thresholds(mechanism: TwoStepBits, epsilon: float) -> tuple[int, int, int]:
    if mechanism.flip_threshold == 0:
        return round_to_thresholds(0.0, 1 / (math.exp(epsilon / mechanism.ones) + 1), 0.5)
    return choose_thresholds(mechanism.ones, min(mechanism.epsilon_inf, LARGEST_RAPPOR), epsilon)
