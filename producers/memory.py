"""The memory of permanent responses: derived from a secret, so nothing is stored and nothing is forgotten.

A memoized client that reports one value again and again repeats one permanent response for ever, so that
averaging its reports shows that response and never the value (RAPPOR, CCS 2014, sections 2 and 4). What this
does not hide is *that* a value changed.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from estimators.rappor import Rappor
from producers.randomizers import permanent
from producers.randomness import Words, below
from producers.secret import Secret

BLOCK_BYTES = 16
WORDS_PER_BLOCK = 4


def encode_field(text: str) -> bytes:
    """UTF-8 after its length in 4 bytes: fields in a row are told apart, so a row of them is injective."""
    # surrogatepass, so that a client id of undecodable bytes is a client like any other.
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "little") + data


class SeededWords:
    """Words that are a function of one seed per row, as `permanent` draws them: rows in order, once each.

    Block j of a row is AES(key, seed XOR j). Seeds are pseudo-random, so among B blocks two inputs meet with
    probability below B**2 / 2**129, and the blocks are as random as AES is a pseudo-random permutation.
    """

    def __init__(self, key: bytes, seeds: NDArray[np.uint64]) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 (AES as a function)
        self._seeds = seeds
        self._used = 0

    def words32(self, shape: tuple[int, ...]) -> NDArray[np.uint32]:
        """uint32 (rows, words) for the next rows."""
        rows, words = shape
        seeds = self._seeds[self._used : self._used + rows]
        self._used += rows
        blocks = np.repeat(seeds[:, np.newaxis, :], -(-words // WORDS_PER_BLOCK), axis=1)
        blocks[:, :, 0] ^= np.arange(blocks.shape[1], dtype=np.uint64)
        stream = np.frombuffer(self._encryptor.update(blocks.reshape(-1).view(np.uint8).data), "<u4")
        return stream.reshape(rows, -1)[:, :words]


class Memory:
    """What one client keeps for ever in one RAPPOR collection: its cohort and its permanent responses.

    Parameters
    ----------
    secret : Secret shared by all producers that serve the same clients.
    name : of the collection.
    mechanism : Rappor.
    memoize : whether one client and value always repeat one permanent response.
    """

    def __init__(self, secret: Secret, name: str, mechanism: Rappor, memoize: bool) -> None:
        self._mechanism = mechanism
        self._key = secret.function(b"deniable-aes", BLOCK_BYTES).digest()
        self._cohort = secret.function(b"deniable-cohort", 8)
        self._cohort.update(encode_field(name))
        self._seed = secret.function(b"deniable-seed", BLOCK_BYTES)
        # p and q are no part of it: changing them must not draw the permanent responses again.
        parameters = (mechanism.bits, mechanism.hashes, mechanism.cohorts, mechanism.flip_threshold)
        self._seed.update(b"".join(map(encode_field, (name, *map(str, parameters)))))
        self._memoize = memoize

    def cohorts(self, clients: Sequence[bytes] | None, count: int, words: Words) -> NDArray[np.uint16]:
        """Cohort of each report, uint16 (count,), whatever its value: a client's own, or a fresh one.

        Parameters
        ----------
        clients : `encode_field` of each report's client; None where every report is a client of its own.
        count : number of reports.
        words : source of fresh ones.
        """
        draws = words.words64(count) if clients is None else _digests(self._cohort, clients).ravel()
        return below(draws, self._mechanism.cohorts).astype(np.uint16)

    def permanent(
        self, rows: NDArray[np.uint8], clients: Sequence[bytes] | None, values: Sequence[str], words: Words
    ) -> NDArray[np.uint8]:
        """Permanent responses, uint8 (n, bits // 8): a client's own to a value if memoized, else fresh ones.

        Parameters
        ----------
        rows : uint8 (n, bits // 8), Bloom filters of the values in the clients' cohorts.
        clients : as `cohorts`.
        values : text, n of them.
        words : source of fresh ones.
        """
        if clients is None or not self._memoize:
            return permanent(rows, self._mechanism, words)
        fields = {value: encode_field(value) for value in set(values)}
        pairs = [client + fields[value] for client, value in zip(clients, values, strict=True)]
        return permanent(rows, self._mechanism, SeededWords(self._key, _digests(self._seed, pairs)))


def _digests(function: blake2b, messages: Sequence[bytes]) -> NDArray[np.uint64]:
    """Pseudo-random function of each message, uint64 (n, digest_size // 8)."""
    digests = []
    for message in messages:
        state = function.copy()
        state.update(message)
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), "<u8").reshape(len(messages), -1)
