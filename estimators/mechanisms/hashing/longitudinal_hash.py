"""Longitudinal local hashing (LOLOHA): a kept function, permanent responses of buckets, fresh reports."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from deniable.estimators.mechanisms.directed_rounding import product_above
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.local_hash import best_buckets
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR

#: Unless the number is given. All reports of a client name its function, which never changes: the fewer
#: functions, the more clients share each, and the larger are the errors from collisions.
DEFAULT_FUNCTIONS = 256
MOST_FUNCTIONS = 65_535


@dataclass(frozen=True)
class LongitudinalHash(FunctionPool):
    """Local hashing whose clients keep their hash function and, for each true bucket, a permanent response.

    A client has one of C shared functions, drawn once, whatever its values are. It hashes its value to one of
    g buckets, remembers a permanent response of each bucket, by k-RR, and reports it after a second k-RR with
    fresh randomness. So a report costs `epsilon_one`, and all reports of an unchanged bucket `epsilon_inf`.

    What reports of a value that changes cost, in nats and for ever:

    1. Let the buckets of two sequences be equal at the same pairs of times. If each takes d buckets, the
       permanent responses are d independent draws in both, so the loss is at most d epsilon_inf, and never
       more than `epsilon_of_all_buckets`. It is attained if all d buckets differ.
    2. If at two times the buckets of one sequence are equal and those of the other are not, the responses are
       equal in the first with certainty, and differ in the other with positive probability. *That* a bucket
       changed is therefore not hidden by any remembered response, and no finite epsilon bounds it for ever.
    3. The permanent responses of all buckets do not depend on the values. Given them, each report is that of
       the second k-RR. So n reports cost at most n times `instantaneous.epsilon`, whatever the values do.

    Parameters
    ----------
    hash_functions : C, a multiple of the functions of a block (`FunctionBlock`), at most 65,535.
    hash_buckets : g, a prime number in [2, 251].
    permanent_threshold : of the k-RR from a bucket to its permanent response, see KRR.
    instantaneous_threshold : of the k-RR from that to a report.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Arcolezi, Pinzón, Palamidessi, Gambs, "Frequency estimation of evolving data under local
    differential privacy" (EDBT 2023), LOLOHA. Its bound g epsilon_inf is that of 1; its second step is
    noisier than epsilon_one asks for if g > 2.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "local-hash-longitudinal"
    title: ClassVar[str] = "longitudinal local hashing"
    wire_number = 5
    keeps_permanent = True
    always_memoizes = True
    repeats_noise = True
    most_functions: ClassVar[int] = MOST_FUNCTIONS

    permanent_threshold: int
    instantaneous_threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.response  # noqa: B018 - checks the thresholds

    @classmethod
    def from_epsilons(
        cls,
        epsilon_inf: float,
        epsilon_one: float,
        hash_functions: int | None = None,
        hash_buckets: int | None = None,
    ) -> Self:
        """Build the mechanism with the least error that exceeds neither epsilon.

        Both steps together are k-RR at epsilon_one, so the error is that of LocalHash at epsilon_one.

        Parameters
        ----------
        epsilon_inf : privacy loss of all reports of one bucket together, nats, in (0, 16].
        epsilon_one : privacy loss of one report, nats, in (0, epsilon_inf).
        hash_functions : largest number of functions; rounded down to whole blocks. By default 256, of which
            1,000 clients share each with about four.
        hash_buckets : prime in [2, 251]; by default `best_buckets` of epsilon_one.

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        LongitudinalKRR.from_epsilons(2, epsilon_inf, epsilon_one)  # checks the epsilons
        buckets = best_buckets(epsilon_one) if hash_buckets is None else hash_buckets
        wanted = DEFAULT_FUNCTIONS if hash_functions is None else hash_functions
        functions = cls.whole_blocks(wanted, buckets)
        steps = LongitudinalKRR.from_epsilons(buckets, epsilon_inf, epsilon_one)
        return cls(functions, buckets, steps.permanent.threshold, steps.instantaneous.threshold)

    @cached_property
    def response(self) -> LongitudinalKRR:
        """The two steps from a bucket to a reported one."""
        return LongitudinalKRR(
            KRR(self.hash_buckets, self.permanent_threshold),
            KRR(self.hash_buckets, self.instantaneous_threshold),
        )

    @property
    def permanent(self) -> KRR:
        """From a bucket to the response that a client remembers."""
        return self.response.permanent

    @property
    def instantaneous(self) -> KRR:
        """From the remembered response to a report."""
        return self.response.instantaneous

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats: `epsilon_one`."""
        return self.response.epsilon_one

    @property
    def epsilon_one(self) -> float:
        """Privacy loss of one report, nats, rounded up."""
        return self.response.epsilon_one

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of any number of reports of one bucket, nats, rounded up."""
        return self.response.epsilon_inf

    @property
    def epsilon_of_all_buckets(self) -> float:
        """Loss of any number of reports of all g buckets, if it is known when they change; nats."""
        return product_above(self.hash_buckets, self.epsilon_inf)

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon of one report with nearly as many functions, see `Traits`."""
        buckets = best_buckets(epsilon)
        least, most = self.range_of_functions(buckets)
        functions = min(max(least, self.hash_functions), most)
        return self.from_epsilons(self.epsilon_inf, epsilon, functions, buckets)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            **self.permanent_parameters(),
            "instantaneous_threshold": self.instantaneous_threshold,
        }

    def permanent_parameters(self) -> dict[str, int | str]:
        """Those on which clients' functions and permanent responses depend.

        Functions of longitudinal hashing are keyed by these and the collection's name alone: a change of
        anything else, such as the second step or the window, gives no client another function, so that no
        further permanent response of an unchanged value is revealed.
        """
        return {
            "kind": self.name,
            "hash_functions": self.hash_functions,
            "hash_buckets": self.hash_buckets,
            "permanent_threshold": self.permanent_threshold,
        }
