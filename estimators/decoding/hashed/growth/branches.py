"""The branches of a growing tree: prefixes that are followed, with the probability that texts have them."""

from dataclasses import dataclass
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.growth.alphabet import Alphabet
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree

#: Prefixes that are followed on one level: growing takes time and memory in proportion.
MOST_PREFIXES = 1 << 17
#: Prefixes are judged by the odds of this frequency, in standard errors of a level, against 0.
ASSUMED_ERRORS = 4.0
#: Of the expected number of prefixes that texts have, what is not followed.
LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Branches:
    """Prefixes of one level, and how likely they are.

    Parameters
    ----------
    prefixes : n distinct ones, in bytes.
    is_whole : bool array (n,), True for those that are whole texts, shorter than the level's prefixes.
    log_probability : float64 array (n,), of the assumption that some text has the prefix, <= 0.
    """

    prefixes: list[bytes]
    is_whole: NDArray[np.bool_]
    log_probability: FloatArray

    @classmethod
    def root(cls) -> Self:
        """The empty prefix, which all texts have."""
        return cls([b""], np.zeros(1, np.bool_), np.zeros(1))

    def grown(self, length: int, alphabet: Alphabet, most: int) -> Self:
        """Extend prefixes to the length of the next level, the likeliest first, to at most `most` of them.

        A prefix shares its probability evenly among its extensions.

        Parameters
        ----------
        length : bytes of a prefix on the next level.
        alphabet : of the texts.
        most : prefixes of the next level, >= 1.

        Raises
        ------
        ValueError if the likeliest prefix alone has more extensions.
        """
        prefixes: list[bytes] = []
        log_probability: list[float] = []
        whole: list[bool] = []
        for place in self._likely().tolist():
            prefix, shared = self.prefixes[place], float(self.log_probability[place])
            if self.is_whole[place]:
                suffixes, number = [[b""]], 1
            else:
                tail = alphabet.tail(prefix)
                number = alphabet.count(tail, length - len(prefix), most)
                if number > most and not prefixes:
                    raise ValueError(
                        f"a step of lengths, to {length} bytes from {len(prefix)}, must give at most {most}"
                        f" prefixes, got more than {most}; name the alphabet, or make the step shorter"
                    )
                suffixes = [] if number > most else alphabet.suffixes(tail, length - len(prefix))
            if len(prefixes) + number > most:
                break
            for of_length in suffixes:
                prefixes.extend([prefix + suffix for suffix in of_length])
                is_whole = (
                    self.is_whole[place] or len(of_length[0] if of_length else b"") + len(prefix) < length
                )
                whole.extend(repeat(bool(is_whole), len(of_length)))
            log_probability.extend(repeat(shared - float(np.log(number)), number))
        return type(self)(prefixes, np.array(whole, np.bool_), np.array(log_probability))

    def _likely(self) -> NDArray[np.int64]:
        """Return the likeliest prefixes, in order, without those that together are hardly expected."""
        order = np.argsort(-self.log_probability, kind="stable")
        expected = np.exp(self.log_probability[order]).cumsum()
        needed = int(np.searchsorted(expected, (1 - LEAST_SHARE) * expected[-1])) + 1
        return order[:needed]

    def weighed(self, inverted: FloatArray, std_error: float) -> Self:
        """Add the evidence of the level to the probabilities.

        The odds of a prefix with frequency a s, s the error, against one that nobody has, are
        e^(a x / s - a^2 / 2) times those before, for a normal estimate x.

        Parameters
        ----------
        inverted : float64 array (n,), unconstrained estimates of the frequencies.
        std_error : of the estimate of a prefix that nobody has.
        """
        odds = self.log_probability + ASSUMED_ERRORS * (inverted / std_error - ASSUMED_ERRORS / 2)
        return type(self)(self.prefixes, self.is_whole, -np.logaddexp(0, -odds))


def check_steps(mechanism: PrefixTree, alphabet: Alphabet) -> None:
    """Refuse lengths whose steps are too long to search.

    Raises
    ------
    ValueError if a prefix has more than MOST_PREFIXES extensions in this alphabet.
    """
    for before, length in zip((0, *mechanism.lengths), mechanism.lengths, strict=False):
        if alphabet.count(b"", length - before, MOST_PREFIXES) > MOST_PREFIXES:
            raise ValueError(
                f"lengths must have steps with at most {MOST_PREFIXES} prefixes, got more than"
                f" {MOST_PREFIXES} from {before} to {length} bytes; make the step shorter, or name the"
                " alphabet of the texts"
            )
