"""Permanent responses, derived from a secret: nothing is stored and nothing is forgotten.

A memoized client that reports a value repeatedly always repeats one permanent response, so averaging its
reports reveals that response and never the value (RAPPOR, CCS 2014, sections 2 and 4). This does not hide
*that* a value changed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.producers.randomization.prf import derive_key, encrypt, mac, mac_texts
from deniable.producers.randomization.randomness import Words, below
from deniable.protocol.secrets.secret import Secret

Blocks = NDArray[np.uint64]

WORDS_PER_BLOCK = 2


class RepeatedWords:
    """Words that depend on one seed per row: a row gets the same words in every batch.

    Block j of a row is AES(key, seed XOR j). Seeds are pseudo-random, so among B blocks two inputs collide
    with probability below B² / 2^129; the blocks differ from random ones by as much again, since they never
    repeat.

    Parameters
    ----------
    key : of AES.
    seeds : uint64 (n, 2).
    """

    def __init__(self, key: bytes, seeds: Blocks) -> None:
        self._key = key
        self._seeds = seeds
        self._used = 0

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Return further words of the n rows, uint64 (n,) or (n, words of a row)."""
        row_words = int(np.prod(shape)) // max(1, len(self._seeds))
        row_blocks = -(-row_words // WORDS_PER_BLOCK)
        blocks = np.empty((len(self._seeds), row_blocks, WORDS_PER_BLOCK), np.uint64)
        blocks[...] = self._seeds[:, np.newaxis]
        blocks[..., 0] ^= np.arange(self._used, self._used + row_blocks, dtype=np.uint64)
        self._used += row_blocks
        words = encrypt(self._key, blocks).reshape(len(self._seeds), row_blocks * WORDS_PER_BLOCK)
        return words[:, :row_words].reshape(shape)


class Memory:
    """The permanent choices of clients in one collection: cohorts and the words of permanent responses.

    Parameters
    ----------
    secret : Secret shared by all producers that serve the same clients.
    name : of the collection.
    parameters : all that a permanent response depends on beside client and value, and nothing else. Not p
        and q of RAPPOR, since changing them must not redraw permanent responses. The list of values, if
        values are identified by number: if a value kept its response because its number stayed, while
        others were redrawn, the unchanged response would reveal the value.
    memoize : whether one client and value always repeat one permanent response.
    """

    def __init__(self, secret: Secret, name: str, parameters: Sequence[str | int], memoize: bool) -> None:
        self._text_key = derive_key(secret, b"deniable-text")
        self._cohort_key = derive_key(secret, b"deniable-cohort", name)
        self._seed_key = derive_key(secret, b"deniable-seed", name, *parameters)
        self._word_key = derive_key(secret, b"deniable-word", name, *parameters)
        self._turn_key = derive_key(secret, b"deniable-turn", name, *parameters)
        self._memoize = memoize

    def digest(self, texts: Sequence[str]) -> Blocks:
        """Map the text of each client or value to one block, uint64 (n, 2).

        Two of N texts share a block with probability below N² / 2^129, in addition to the bound of `prf`.
        """
        return mac_texts(self._text_key, texts)

    def cohorts(self, clients: Blocks | None, count: int, cohorts: int, fresh: Words) -> NDArray[np.uint16]:
        """Return the cohort of each report, uint16 (count,): its client's or a fresh one, whatever its value.

        Parameters
        ----------
        clients : `digest` of each report's client; None if every report is from a different client.
        count : number of reports.
        cohorts : of the mechanism, in [1, 65535].
        fresh : source of words for fresh cohorts, one per report.
        """
        words = fresh.words64((count,)) if clients is None else mac(self._cohort_key, [clients])[:, 0]
        return below(words, cohorts).astype(np.uint16)

    def turns(self, clients: Blocks, bound: int) -> NDArray[np.int64]:
        """Return each client's number, int64 (n,), in [0, bound), independent of responses and cohorts."""
        return below(mac(self._turn_key, [clients])[:, 0], bound).astype(np.int64)

    def words(self, clients: Blocks | None, values: Callable[[], Sequence[Blocks]], fresh: Words) -> Words:
        """Return the source of words for the permanent responses of n reports.

        Parameters
        ----------
        clients : as in `cohorts`.
        values : returns the blocks that identify each report's value, m arrays of uint64 (n, 2), with the
            same m in all calls; not called if nothing is memoized.
        fresh : the source to use if clients are None or nothing is memoized.
        """
        if clients is None or not self._memoize:
            return fresh
        return RepeatedWords(self._word_key, mac(self._seed_key, [clients, *values()]))


def number_blocks(numbers: NDArray[np.int64]) -> Blocks:
    """Return the blocks that identify values given by their numbers, uint64 (n, 2), from int64 (n,)."""
    blocks = np.zeros((len(numbers), 2), np.uint64)
    blocks[:, 0] = numbers.view(np.uint64)
    return blocks
