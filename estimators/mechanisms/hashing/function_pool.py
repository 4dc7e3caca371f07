"""What both kinds of local hashing share: a pool of C hash functions into g buckets."""

from dataclasses import dataclass
from typing import ClassVar

from deniable.estimators.mechanisms.hashing.function_block import block_of, is_prime
from deniable.estimators.mechanisms.traits import OneCohort, QuestionKind, SymmetricChannel

LARGEST_BUCKETS = 251
LARGEST_COUNTERS = 1 << 20


@dataclass(frozen=True)
class FunctionPool(OneCohort):
    """C shared hash functions into g buckets; a report is a function and a bucket, after `response`.

    Counts are those of C g counters: counter function * g + bucket.

    Parameters
    ----------
    hash_functions : C, a multiple of the functions of a block (`FunctionBlock`); C g at most 2^20.
    hash_buckets : g, a prime number in [2, 251].

    Raises
    ------
    ValueError if a parameter is out of range.
    """

    kind = QuestionKind.STRINGS
    title: ClassVar[str]
    #: Largest number of functions.
    most_functions: ClassVar[int] = LARGEST_COUNTERS

    hash_functions: int
    hash_buckets: int

    def __post_init__(self) -> None:
        step, most = self.range_of_functions(self.hash_buckets)
        most = most // step * step
        if not step <= self.hash_functions <= most or self.hash_functions % step:
            raise ValueError(
                f"hash_functions must be a multiple of {step} in [{step}, {most}] for {self.hash_buckets}"
                f" hash_buckets, got {self.hash_functions}"
            )

    @classmethod
    def range_of_functions(cls, hash_buckets: int) -> tuple[int, int]:
        """Return the functions of a block, and the largest number of functions, not rounded to blocks.

        Parameters
        ----------
        hash_buckets : g.

        Raises
        ------
        ValueError if it is not a prime in [2, 251].
        """
        if not (2 <= hash_buckets <= LARGEST_BUCKETS and is_prime(hash_buckets)):
            raise ValueError(f"hash_buckets must be a prime in [2, {LARGEST_BUCKETS}], got {hash_buckets}")
        most = min(LARGEST_COUNTERS // hash_buckets, cls.most_functions)
        return block_of(hash_buckets).functions, most

    @classmethod
    def whole_blocks(cls, wanted: int, hash_buckets: int) -> int:
        """Round a number of functions down to whole blocks.

        Parameters
        ----------
        wanted : number of functions.
        hash_buckets : g.

        Raises
        ------
        ValueError if a number is out of range.
        """
        step, most = cls.range_of_functions(hash_buckets)
        if not step <= wanted <= most:
            raise ValueError(
                f"hash_functions must be in [{step}, {most}] for {hash_buckets} hash_buckets, got {wanted}"
            )
        return wanted // step * step

    @property
    def response(self) -> SymmetricChannel:
        """The channel from a bucket to a reported one."""
        raise NotImplementedError

    @property
    def hit(self) -> float:
        """P(a report supports v | truth v): its function gives v the reported bucket; p of `response`."""
        return self.response.p

    @property
    def miss(self) -> float:
        """P(a report supports v | another truth), over the functions: 1 / g."""
        return 1 / self.hash_buckets

    @property
    def contrast(self) -> float:
        """Difference hit - miss: (p - q)(g - 1) / g."""
        return self.response.contrast * (self.hash_buckets - 1) / self.hash_buckets

    @property
    def collision_variance(self) -> float:
        """Variance of an estimate for each unit of sum f^2 over other values: 1 / (C (g - 1)).

        Values collide in more or fewer than C / g functions, which reports do not average out.
        """
        return 1 / (self.hash_functions * (self.hash_buckets - 1))

    @property
    def width(self) -> int:
        """Counters in one row of counts: one for each function and bucket."""
        return self.hash_functions * self.hash_buckets

    @property
    def counter_rates(self) -> tuple[float, float]:
        """P(report of a function and bucket) where the function gives the value that bucket, or another."""
        return self.response.p / self.hash_functions, self.response.q / self.hash_functions

    @property
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to an estimated share: 1 / (hit - miss)."""
        return 1 / self.contrast
