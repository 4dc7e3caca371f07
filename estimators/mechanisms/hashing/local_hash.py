"""Local hashing: hash a value by one of C shared functions, and randomize the bucket by k-RR."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from deniable.estimators.mechanisms.hashing.function_block import block_of, is_prime
from deniable.estimators.mechanisms.hashing.function_pool import LARGEST_BUCKETS, FunctionPool
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON

#: Functions times buckets, unless the number of functions is given: a report of 2 bytes, a page of counters.
DEFAULT_COUNTERS = 1 << 16


@dataclass(frozen=True)
class LocalHash(FunctionPool):
    """Local hashing with a pool of C hash functions that all clients share.

    For each report a client draws a function uniformly, hashes its value by it to one of g buckets, and
    reports the function and the bucket after k-RR over the buckets. Any text can be a value. The function
    depends on nothing, so a report costs exactly what its k-RR costs. Counts are those of C g counters:
    counter function * g + bucket.

    Parameters
    ----------
    hash_functions : C, a multiple of the functions of a block (`FunctionBlock`); C g at most 2^20.
    hash_buckets : g, a prime number in [2, 251].
    threshold : of k-RR over the buckets, see KRR.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security
    2017), section 4.4, optimized local hashing; there g = e^epsilon + 1, and a new function for each report.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "local-hash"
    title: ClassVar[str] = "local hashing"
    wire_number = 4

    threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        KRR(self.hash_buckets, self.threshold)  # checks the threshold

    @classmethod
    def from_epsilon(
        cls, epsilon: float, hash_functions: int | None = None, hash_buckets: int | None = None
    ) -> Self:
        """Build the mechanism with the least error at this epsilon, never exceeded.

        Parameters
        ----------
        epsilon : privacy loss of one report, nats, in (0, 16].
        hash_functions : largest number of functions; rounded down to whole blocks. By default as many as
            65,536 counters hold.
        hash_buckets : prime in [2, 251]; by default `best_buckets`.

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be in (0, {LARGEST_EPSILON}], got {epsilon}")
        buckets = best_buckets(epsilon) if hash_buckets is None else hash_buckets
        wanted = DEFAULT_COUNTERS // max(buckets, 1) if hash_functions is None else hash_functions
        functions = cls.whole_blocks(wanted, buckets)
        return cls(functions, buckets, KRR.from_epsilon(buckets, epsilon).threshold)

    @cached_property
    def response(self) -> KRR:
        """The k-RR of a bucket."""
        return KRR(self.hash_buckets, self.threshold)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up."""
        return self.response.epsilon

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon with nearly as many counters, see `Traits`."""
        buckets = best_buckets(epsilon)
        functions = max(block_of(buckets).functions, self.width // buckets)
        return self.from_epsilon(epsilon, functions, buckets)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "hash_functions": self.hash_functions,
            "hash_buckets": self.hash_buckets,
            "threshold": self.threshold,
        }


def best_buckets(epsilon: float) -> int:
    """Return the prime g with the least variance of a rare value.

    N Var = (1/g)(1 - 1/g) / (p - 1/g)^2 = (e^epsilon + g - 1)^2 / ((g - 1)(e^epsilon - 1)^2), least at
    g = e^epsilon + 1, where it is 4 e^epsilon / (e^epsilon - 1)^2. That g is prime costs at most 3.1 %,
    below LARGEST_BUCKETS. The variance of collisions is left out: at a given number of counters it is
    proportional to g / (g - 1), so it hardly depends on g, however few the functions are.

    Parameters
    ----------
    epsilon : privacy loss of one report, nats, in (0, 16].

    Source: Wang et al. (USENIX Security 2017), section 4.4.
    """
    odds = math.exp(epsilon)
    primes = filter(is_prime, range(2, LARGEST_BUCKETS + 1))
    return min(primes, key=lambda g: (odds + g - 1) ** 2 / (g - 1))
