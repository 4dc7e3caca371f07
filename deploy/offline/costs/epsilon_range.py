"""The range of epsilon that commands take, and what its help and its error say of it."""

from collections.abc import Mapping

from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.matrix.one_hot_pair import LEAST_EPSILON

EPSILON_RANGE = f"[{LEAST_EPSILON:g}, {LARGEST_EPSILON}]"


def check_epsilons(given: Mapping[str, float]) -> None:
    """Check epsilon, epsilon_inf and epsilon_one, those of them that are given.

    Raises
    ------
    ValueError with the name of the parameter if one is out of [1e-6, 16], or epsilon_one not below
    epsilon_inf.
    """
    for name in ("epsilon", "epsilon_inf", "epsilon_one"):
        if name in given and not LEAST_EPSILON <= given[name] <= LARGEST_EPSILON:
            raise ValueError(f"{name} must be in {EPSILON_RANGE}, got {given[name]}")
    inf, one = given.get("epsilon_inf"), given.get("epsilon_one")
    if inf is not None and one is not None and not one < inf:
        raise ValueError(f"epsilon_one must be in [{LEAST_EPSILON:g}, epsilon_inf = {inf}), got {one}")
