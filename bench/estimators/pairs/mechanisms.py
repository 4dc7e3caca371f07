"""What a pair of fields costs by mechanism: variances of a rare pair and of rare values.

Nothing is simulated: all are exact for the noise alone, of a pair and of values that nobody has, times the
number of reports. All mechanisms have the same epsilon per report.
"""

from itertools import product
from typing import NamedTuple

from bench.sections import ResultRow, Section
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.planning import best_bloom, best_one_hot, expected_std_error

SIZES = ((4, 3), (17, 3), (17, 105))
EPSILONS = (1.0, 2.0, 4.0, 8.0)


class PairCost(NamedTuple):
    """N times the variance of a rare pair, and of a rare value of each field."""

    pair: float
    first: float
    second: float


def costs_of(k1: int, k2: int, epsilon: float) -> dict[str, PairCost]:
    """Return what each mechanism costs; where no field is asked alone, a value is the sum of its pairs.

    Two one-hot vectors that share epsilon have the products of their debiased bits in each pair: the variance
    of a pair that nobody has is the product of both, if both values are rare. Clients divided into thirds
    answer one question each, with the whole epsilon.
    """
    split = PairKRR.from_epsilons(k1, k2, epsilon / 2, epsilon / 2)
    half, bit = _variance(best_one_hot(2, epsilon / 2)), _variance(best_one_hot(2, epsilon))
    cell, hashed = _variance(KRR.from_epsilon(k1 * k2, epsilon)), _variance(LocalHash.from_epsilon(epsilon))
    bloom_half, bloom = _variance(best_bloom(epsilon / 2)), _variance(best_bloom(epsilon))
    return {
        "k-rr-pair": PairCost(_variance(split), _variance(split.first), _variance(split.second)),
        "one-hot of each field": PairCost(half**2, half, half),
        "one-hot-pair": PairCost(bit, k2 * bit, k1 * bit),
        "k-rr of pairs": PairCost(cell, k2 * cell, k1 * cell),
        "thirds of one-hot": PairCost(3 * bit, 3 * bit, 3 * bit),
        "rappor of each field": PairCost(bloom_half**2, bloom_half, bloom_half),
        "rappor of joined texts": PairCost(bloom, k2 * bloom, k1 * bloom),
        "local-hash of joined texts": PairCost(hashed, k2 * hashed, k1 * hashed),
    }


def _variance(mechanism: Mechanism) -> float:
    return expected_std_error(mechanism, 1) ** 2


def mechanisms() -> Section:
    """All sizes, epsilons and mechanisms."""
    rows: list[ResultRow] = []
    for (k1, k2), epsilon in product(SIZES, EPSILONS):
        for name, cost in costs_of(k1, k2, epsilon).items():
            shown = [f"{each:.3g}" for each in cost]
            columns = dict(zip(("pair", "first value", "second value"), shown, strict=True))
            rows.append({"values": f"{k1} x {k2}", "epsilon": epsilon, "mechanism": name, **columns})
    return Section("N times the variance of a rare pair, and of a rare value of each field; exact.", rows)


CASES = {"mechanisms of pairs": mechanisms}
