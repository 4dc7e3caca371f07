"""The memory of permanent responses: derived from a secret, so nothing is stored and nothing is forgotten.

A memoized client that reports one value again and again repeats one permanent response for ever, so that
averaging its reports shows that response and never the value (RAPPOR, CCS 2014, sections 2 and 4). What this
does not hide is *that* a value changed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from producers.randomization.prf import derive_key, encrypt, mac, mac_texts
from producers.randomization.randomness import Words, below
from producers.randomization.secret import Secret

Blocks = NDArray[np.uint64]

WORDS_PER_BLOCK = 2


class RepeatedWords:
    """Words that are a function of one seed per row: what is drawn for a row is the same in every batch.

    Block j of a row is AES(key, seed XOR j). Seeds are pseudo-random, so among B blocks two inputs meet with
    probability below B² / 2^129, and the blocks differ from random ones by as much again, having no repeats.

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
        """Words of the n rows, uint64 (n,) or (n, words of a row); never the same ones twice."""
        row_words = int(np.prod(shape)) // max(1, len(self._seeds))
        row_blocks = -(-row_words // WORDS_PER_BLOCK)
        blocks = np.empty((len(self._seeds), row_blocks, WORDS_PER_BLOCK), np.uint64)
        blocks[...] = self._seeds[:, np.newaxis]
        blocks[..., 0] ^= np.arange(self._used, self._used + row_blocks, dtype=np.uint64)
        self._used += row_blocks
        words = encrypt(self._key, blocks).reshape(len(self._seeds), row_blocks * WORDS_PER_BLOCK)
        return words[:, :row_words].reshape(shape)


class Memory:
    """What clients keep for ever in one collection: their cohorts and the words of their permanent responses.

    Parameters
    ----------
    secret : Secret shared by all producers that serve the same clients.
    name : of the collection.
    parameters : all that a permanent response depends on beside client and value, and nothing else: p and q
        of RAPPOR are none of it, since changing them must not draw the permanent responses again. Where
        values are told by number, the list is part of it: if a value kept its response because its number
        stayed, while the others drew theirs again, what stayed would tell the value.
    memoize : whether one client and value always repeat one permanent response.
    """

    def __init__(self, secret: Secret, name: str, parameters: Sequence[str | int], memoize: bool) -> None:
        self._text_key = derive_key(secret, b"deniable-text")
        self._cohort_key = derive_key(secret, b"deniable-cohort", name)
        self._seed_key = derive_key(secret, b"deniable-seed", name, *parameters)
        self._word_key = derive_key(secret, b"deniable-word", name, *parameters)
        self._memoize = memoize

    def digest(self, texts: Sequence[str]) -> Blocks:
        """One block, uint64 (n, 2), in the place of each client's or value's text.

        Two of N texts share a block with probability below N² / 2^129, beyond the bound of `prf`.
        """
        return mac_texts(self._text_key, texts)

    def cohorts(self, clients: Blocks | None, count: int, cohorts: int, fresh: Words) -> NDArray[np.uint16]:
        """Cohort of each report, uint16 (count,), whatever its value: a client's own, or a fresh one.

        Parameters
        ----------
        clients : `digest` of each report's client; None where every report is a client of its own.
        count : number of reports.
        cohorts : of the mechanism, in [1, 65535].
        fresh : source of the words of fresh ones, one per report.
        """
        words = fresh.words64((count,)) if clients is None else mac(self._cohort_key, [clients])[:, 0]
        return below(words, cohorts).astype(np.uint16)

    def words(self, clients: Blocks | None, values: Callable[[], Sequence[Blocks]], fresh: Words) -> Words:
        """Source of the words that the permanent responses of n reports are drawn with.

        Parameters
        ----------
        clients : as of `cohorts`.
        values : makes the blocks that name each report's value, m arrays of uint64 (n, 2), the same m in all
            calls; it is not called where nothing is to be remembered.
        fresh : the source where clients are None or nothing is memoized.
        """
        if clients is None or not self._memoize:
            return fresh
        return RepeatedWords(self._word_key, mac(self._seed_key, [clients, *values()]))
