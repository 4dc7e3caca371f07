"""The shared hash functions of a collection: keyed by its public `hash_key`, and drawn by HMAC.

A value becomes a 64-bit word w, the first 8 bytes of its HMAC-SHA-256, little-endian. Block b of functions
sees of it the symbol (((a_b w + d_b) mod 2^64) >> 32) * symbols >> 32, with a_b and d_b from the HMAC of b.

What the variance of estimates needs, and what holds if HMAC is a pseudo-random function:
1. Within a block, different values have independent, uniform symbols, because their words are.
2. For two values, the symbols of different blocks are independent: given words w and w + z, with 2^32 not
   dividing z (probability 1 - 2^-32), (a w + d) and (a (w + z) + d) have high halves that are independent and
   uniform: d makes the first uniform, and a z is uniform over the multiples of a power of two up to 2^32.
So for reports of any values, collisions are uncorrelated between values and between blocks.

Multiply-shift of 32 bits gives each of n symbols floor or ceil of 2^32 / n numbers, so its probability is
within n 2^-32, at most 2^-20, of 1 / n, relatively. The share of functions in which two values collide then
differs from 1 / g by less than 2^-40. Privacy does not depend on any of this: only on the randomized bucket.
"""

import hmac
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool

DIGEST = "sha256"
OF_VALUES, OF_BLOCKS = b"deniable local-hash values", b"deniable local-hash blocks"
_HALF = np.uint64(32)


class HashFunctions:
    """The hash functions of one collection.

    Parameters
    ----------
    mechanism : FunctionPool, with the numbers of functions and buckets.
    hash_key : of the collection, unsigned 64-bit.
    """

    def __init__(self, mechanism: FunctionPool, hash_key: int) -> None:
        self.mechanism = mechanism
        self.block = block_of(mechanism.hash_buckets)
        key = hash_key.to_bytes(8, "little")
        self._key = hmac.digest(key, OF_VALUES, DIGEST)
        block_key = hmac.digest(key, OF_BLOCKS, DIGEST)
        blocks = mechanism.hash_functions // self.block.functions
        drawn = b"".join(hmac.digest(block_key, b.to_bytes(4, "little"), DIGEST)[:16] for b in range(blocks))
        #: a_b and d_b, uint64 (blocks,).
        self.multipliers, self.offsets = np.frombuffer(drawn, "<u8").reshape(blocks, 2).T.copy()

    def words(self, values: Sequence[str]) -> NDArray[np.uint64]:
        """Return the word of each value, uint64 (n,); a lone surrogate, which has no UTF-8, counts as `?`."""
        return self.words_of([each.encode("utf-8", "replace") for each in values])

    def words_of(self, messages: Sequence[bytes]) -> NDArray[np.uint64]:
        """Return the word of each message, uint64 (n,): that of a value whose UTF-8 it is."""
        digests = [hmac.digest(self._key, each, DIGEST)[:8] for each in messages]
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)

    def buckets(self, words: NDArray[np.uint64], functions: NDArray[np.integer]) -> NDArray[np.int64]:
        """Hash n words, each by one function.

        Parameters
        ----------
        words : uint64 (n,), of the values.
        functions : integer array (n,), in [0, hash_functions).

        Returns
        -------
        int64 (n,), in [0, hash_buckets).
        """
        block = functions // self.block.functions
        row = functions - block * self.block.functions
        mixed = words * self.multipliers.take(block)
        mixed += self.offsets.take(block)
        mixed >>= _HALF
        mixed *= np.uint64(self.block.symbols)
        mixed >>= _HALF
        place = row * self.block.symbols + mixed.view(np.int64)
        found: NDArray[np.int64] = self.block.table.reshape(-1).take(place).astype(np.int64)
        return found

    def symbols(self, words: NDArray[np.uint64], block: int, out: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the symbol that a block sees of each word, int64 (n,), a view of `out`, uint64 (n,)."""
        np.multiply(words, self.multipliers[block], out=out)
        out += self.offsets[block]
        out >>= _HALF
        out *= np.uint64(self.block.symbols)
        out >>= _HALF
        return out.view(np.int64)


@lru_cache(maxsize=64)
def hash_functions_of(mechanism: FunctionPool, hash_key: int) -> HashFunctions:
    """Return the hash functions of a collection; the last 64 are kept."""
    return HashFunctions(mechanism, hash_key)
