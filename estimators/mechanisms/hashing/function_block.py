"""The functions of one block: linear functions, modulo a prime, of the digits of a symbol."""

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

MOST_SYMBOLS = 4096  # of a block: its sums fit into a processor's first cache
MOST_CHUNK = 49  # symbols of a chunk; see `FunctionBlock`


def is_prime(number: int) -> bool:
    """Whether an integer in [0, 2^16) is prime."""
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


@dataclass(frozen=True)
class FunctionBlock:
    """All hash functions of one block: which bucket each gives to each symbol.

    A symbol has `chunks` chunks of `digits` digits to the base g, the number of buckets. A function is a
    linear function modulo g of the digits of one chunk, one for each line through 0 of their vector space
    (the coefficients (1), (1, *), …, with the first non-zero one 1): (g^digits - 1) / (g - 1) functions a
    chunk, the simplex code. Of these, two symbols that differ in the chunk give equal buckets in exactly
    (g^(digits - 1) - 1) / (g - 1), whatever the two are, and symbols with equal chunks in all. For two
    independent, uniform symbols the variance of that number is exactly that of as many independent functions.

    With more digits a chunk, fewer symbols have to be looked up for as many functions, but values collide
    less often, and then in more functions at once. A chunk has as many digits as MOST_CHUNK allows, so that
    with 65,536 counters any two values share tens of chunks, and errors from collisions are nearly normal.

    Parameters
    ----------
    buckets : g, prime, in [2, 4096).
    """

    buckets: int

    @cached_property
    def digits(self) -> int:
        """Digits of a chunk, >= 1."""
        return max(count for count in range(1, 13) if count == 1 or self.buckets**count <= MOST_CHUNK)

    @cached_property
    def chunks(self) -> int:
        """Chunks of a symbol, >= 1."""
        size = self.buckets**self.digits
        return max(count for count in range(1, 13) if count == 1 or size**count <= MOST_SYMBOLS)

    @property
    def functions(self) -> int:
        """Functions of the block: the rows of `table`."""
        return int(self.chunks * (self.buckets**self.digits - 1) // (self.buckets - 1))

    @cached_property
    def chunk_symbols(self) -> int:
        """Number of values of a chunk."""
        return int(self.buckets**self.digits)

    @property
    def distinct(self) -> int:
        """In how many functions of a chunk two values of it have different buckets, whatever the two are."""
        return int(self.buckets ** (self.digits - 1))

    @cached_property
    def symbols(self) -> int:
        """Number of symbols: the columns of `table`. The first chunk is the lowest digit of a symbol."""
        return int(self.chunk_symbols**self.chunks)

    @cached_property
    def table(self) -> NDArray[np.uint8]:
        """The bucket of each symbol under each function, uint8 (functions, symbols)."""
        powers = self.buckets ** np.arange(self.digits * self.chunks)
        digits = np.arange(self.symbols)[:, np.newaxis] // powers % self.buckets
        of_chunks = digits.reshape(self.symbols, self.chunks, self.digits)
        lines = [
            line
            for line in product(range(self.buckets), repeat=self.digits)
            if any(line) and next(each for each in line if each) == 1
        ]
        buckets = (of_chunks @ np.array(lines).T) % self.buckets  # by symbol, chunk and line
        table: NDArray[np.uint8] = buckets.reshape(self.symbols, -1).T.astype(np.uint8)
        return table

    @cached_property
    def members(self) -> NDArray[np.float64]:
        """1 where a function of a chunk gives a value of the chunk a bucket, else 0; the same for each chunk.

        float64 (functions of a chunk * buckets, chunk_symbols).
        """
        of_chunk = self.table[: self.functions // self.chunks, : self.chunk_symbols]
        equal = of_chunk[:, np.newaxis, :] == np.arange(self.buckets, dtype=np.uint8)[:, np.newaxis]
        members: NDArray[np.float64] = equal.reshape(-1, self.chunk_symbols).astype(np.float64)
        return members


@cache
def block_of(buckets: int) -> FunctionBlock:
    """Return the block for this number of buckets, with its tables computed once."""
    return FunctionBlock(buckets)
