"""The registry: all mechanisms that a collection can use, and how to rebuild one at another epsilon.

Rule: what differs between mechanisms is a trait (`traits.Traits`), or stands in their own modules. Here are
questions whose answer is a mechanism with more to it than traits: None for all others.
"""

from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON as LARGEST_KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import LARGEST_EPSILON as LARGEST_RAPPOR
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection

#: Without a permanent response: each report is randomized afresh.
OneStep = KRR | SubsetSelection | LocalHash | PrefixTree | PairKRR | SquareWave
Mechanism = OneStep | LongitudinalKRR | LongitudinalHash | Rappor | HotRappor

LEAST = 0.1
MOST = 10.0
#: Largest epsilon_one / epsilon_inf: at 1 every report would repeat the permanent response.
SHARE_OF_PERMANENT = 0.99


def number_of(mechanism: Mechanism) -> SquareWave | None:
    """Return the mechanism if its kind is a number."""
    return mechanism if isinstance(mechanism, SquareWave) else None


def tree_of(mechanism: Mechanism) -> PrefixTree | None:
    """Return the mechanism if it is a prefix tree, whose strings can be searched for."""
    return mechanism if isinstance(mechanism, PrefixTree) else None


def longest_of(mechanism: Mechanism) -> int | None:
    """Return the bytes at which a prefix tree cuts texts, those of its last level; None for others."""
    tree = tree_of(mechanism)
    return None if tree is None else tree.lengths[-1]


def pool_of(mechanism: Mechanism) -> FunctionPool | None:
    """Return the hash functions of local hashing; of a prefix tree, those of each level."""
    if isinstance(mechanism, PrefixTree):
        return mechanism.oracle
    return mechanism if isinstance(mechanism, FunctionPool) else None


def bits_of(mechanism: Mechanism) -> Rappor | HotRappor | None:
    """Return the mechanism if its reports are bits: RAPPOR of any kind."""
    return mechanism if isinstance(mechanism, TwoStepBits) else None


def bloom_of(mechanism: Mechanism) -> Rappor | None:
    """Return the mechanism if strings are decoded from bits: Bloom RAPPOR."""
    return mechanism if isinstance(mechanism, Rappor) else None


def pair_of(mechanism: Mechanism) -> PairKRR | None:
    """Return the mechanism if it randomizes the two fields of a pair beside each other."""
    return mechanism if isinstance(mechanism, PairKRR) else None


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
    if not mechanism.keeps_permanent:
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
    return mechanism.at_epsilon(epsilon)
