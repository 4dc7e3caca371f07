"""A prefix tree of local hashing: each client reports a prefix of its text, of the length of its level."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.traits import QuestionKind, Traits

MOST_LEVELS = 32
LONGEST = 255  # bytes of a prefix


@dataclass(frozen=True)
class PrefixTree(Traits):
    """Local hashing of prefixes, so that frequent texts can be found without a list of candidates.

    A client has one of L levels, drawn once, whatever its values are; the cohort of its reports names it. It
    reports the first `lengths[level]` bytes of its text in UTF-8 by local hashing: a shorter text is its own
    prefix, so a prefix shorter than `lengths[level]` is a whole text. The level depends on nothing, so a
    report costs exactly what its local hashing costs. Counts are those of L times C g counters.

    Parameters
    ----------
    lengths : bytes of a prefix on each of the 2 to 32 levels, ascending, in [1, 255]. Texts that agree in as
        many bytes as the last one are not told apart.
    oracle : the local hashing of a prefix, the same on all levels, with other functions on each.

    Raises
    ------
    ValueError if lengths are too few or many, out of range, or not ascending.

    Source: Wang, Li, Jha, "Locally differentially private heavy hitter identification" (IEEE TDSC 2021), PEM,
    whose clients are divided into groups, each for a length of prefixes.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "prefix-tree"
    kind = QuestionKind.STRINGS
    wire_number = LocalHash.wire_number
    repeats_noise = True  # a client keeps its level

    lengths: tuple[int, ...]
    oracle: LocalHash

    def __post_init__(self) -> None:
        if not 2 <= len(self.lengths) <= MOST_LEVELS:
            raise ValueError(f"lengths must be 2 to {MOST_LEVELS} numbers, got {len(self.lengths)}")
        ascending = all(one < other for one, other in zip(self.lengths, self.lengths[1:], strict=False))
        if not (ascending and self.lengths[0] >= 1 and self.lengths[-1] <= LONGEST):
            raise ValueError(f"lengths must be ascending, in [1, {LONGEST}], got {list(self.lengths)}")

    @classmethod
    def from_epsilon(
        cls,
        lengths: Sequence[int],
        epsilon: float,
        hash_functions: int | None = None,
        hash_buckets: int | None = None,
    ) -> Self:
        """Build the tree with the least error at this epsilon, never exceeded.

        Parameters
        ----------
        lengths : as of the class.
        epsilon : privacy loss of one report, nats, in (0, 16].
        hash_functions, hash_buckets : of each level, see `LocalHash.from_epsilon`.

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        return cls(tuple(lengths), LocalHash.from_epsilon(epsilon, hash_functions, hash_buckets))

    @property
    def cohorts(self) -> int:
        """Number of groups of clients that are counted separately: the levels, L."""
        return len(self.lengths)

    @property
    def width(self) -> int:
        """Counters in one row of counts, of one level: C g."""
        return self.oracle.width

    @property
    def counter_rates(self) -> tuple[float, float]:
        """Those of `oracle`, on one level."""
        return self.oracle.counter_rates

    @property
    def max_step(self) -> float:
        """That of `oracle` times the levels: about one in L reports is of the last level."""
        return self.cohorts / self.oracle.contrast

    @property
    def response(self) -> KRR:
        """The k-RR of a bucket."""
        return self.oracle.response

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up."""
        return self.oracle.epsilon

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon with nearly as many counters, see `Traits`."""
        return type(self)(self.lengths, self.oracle.at_epsilon(epsilon))

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        lengths = " ".join(map(str, self.lengths))
        return self.oracle.parameters() | {"kind": self.name, "lengths": lengths}

    def prefix(self, text: bytes, level: int) -> bytes:
        """Return the prefix of a text, its UTF-8, that clients of a level report."""
        return text[: self.lengths[level]]

    def words(self, prefixes: Sequence[bytes], level: int, functions: HashFunctions) -> NDArray[np.uint64]:
        """Hash prefixes for the functions of a level.

        The level is the first byte of what is hashed, so collisions of a text differ from level to level.

        Parameters
        ----------
        prefixes : n texts in UTF-8, each cut by `prefix`.
        level : in [0, L).
        functions : of the collection, for `oracle`.

        Returns
        -------
        uint64 (n,).
        """
        first = bytes([level])
        return functions.words_of([first + each for each in prefixes])


def shown_text(prefix: bytes) -> str:
    """Return a prefix for people; a character that it cuts is written as its bytes."""
    return prefix.decode("utf-8", "backslashreplace")


def utf_8(text: str) -> bytes:
    """Return the UTF-8 of a text; a lone surrogate, which has none, counts as `?`."""
    return text.encode("utf-8", "replace")
