"""Responders of RAPPOR: Bloom filters of any text, and one or several listed values."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.bloom_filter import numbered_rows
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.randomization.permanent_responses import Blocks, Memory
from deniable.producers.randomization.randomizers import at_most, instantaneous, permanent
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Responses, chunks
from deniable.producers.responders.buckets import Buckets
from deniable.producers.responders.validation import clients_of, different_texts, text_sets, texts
from deniable.protocol.notation import UNKNOWN
from deniable.protocol.secrets.aes import BLOCK_BYTES
from deniable.protocol.secrets.secret import Secret


class BloomResponder:
    """RAPPOR with Bloom filters, for any text, so no value is unknown."""

    unknown = 0

    def __init__(self, collection: Collection, mechanism: Rappor, secret: Secret, words: Words) -> None:
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        shape = (mechanism.bits, mechanism.hashes, mechanism.cohorts)
        parameters = ("rappor", *shape, mechanism.flip_threshold)
        self._memory = Memory(secret, collection.name, parameters, collection.memoize)
        self._words = words

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        different, number = different_texts(self._what, values)
        # Lone surrogates have no UTF-8; refusing such a text would depend on the value and reveal it.
        words = [word.encode("utf-8", "replace").decode() for word in different]
        listed = clients_of(clients, len(number))
        # Each is computed on first use, for all parts.
        names = cache(lambda: self._memory.digest(words))
        owners = cache(lambda: None if listed is None else self._memory.digest(listed))

        def respond(part: slice) -> Responses:
            blocks = owners()
            return self._respond(words, number[part], names, None if blocks is None else blocks[part])

        return Batch(len(number), listed, respond)

    def _respond(
        self, words: list[str], number: NDArray[np.int64], names: Callable[[], Blocks], owners: Blocks | None
    ) -> Responses:
        cohorts = self._memory.cohorts(owners, len(number), self._mechanism.cohorts, self._words)
        rows = numbered_rows(words, number, cohorts, self._mechanism)
        for part in chunks(len(number), self._mechanism.bits // 8):
            rows[part] = self._reports(
                rows[part], number[part], names, None if owners is None else owners[part]
            )
        return cohorts, rows

    def _reports(
        self,
        rows: NDArray[np.uint8],
        number: NDArray[np.int64],
        names: Callable[[], Blocks],
        owners: Blocks | None,
    ) -> NDArray[np.uint8]:
        kept = self._memory.words(owners, lambda: [names().take(number, axis=0)], self._words)
        # Without permanent responses, rows do not matter: as a single row they leave no word partly unused.
        bits = rows.reshape(1, -1) if kept is self._words else rows
        noisy = instantaneous(permanent(bits, self._mechanism, kept), self._mechanism, self._words)
        return noisy.reshape(rows.shape)


class HotResponder:
    """RAPPOR with a bit for each listed value: a report takes one value (one-hot) or a set of them (k-hot).

    A set of more than `hot` values is reduced to a uniformly random subset of `hot` values, always the same
    one if responses are memoized. A smaller set stays unchanged, since the loss depends only on the bits that
    differ. An unlisted value sets the bit `other` or, without one, no bit: every estimate is the share of
    reports whose client is in a bucket, and that client is in none.

    Raises
    ------
    ValueError if the collection lists no values.
    """

    def __init__(self, collection: Collection, mechanism: HotRappor, secret: Secret, words: Words) -> None:
        if not collection.values:
            raise ValueError(f"values of {collection.name} must be listed for RAPPOR without hashing")
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        self._buckets = Buckets(collection, mechanism.buckets)
        parameters = ("rappor-hot", mechanism.hot, mechanism.flip_threshold, *self._buckets.meaning)
        self._memory = Memory(secret, collection.name, parameters, collection.memoize)
        self._words = words

    @property
    def unknown(self) -> int:
        """Number of unlisted values so far."""
        return self._buckets.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """Check values as in Responder; a value of k-hot is a set, list or tuple."""
        if self._mechanism.hot == 1:
            members = texts(self._what, values)
            sizes = np.ones(len(members), np.int64)
        else:
            members, sizes = text_sets(self._what, values)
        numbers = self._buckets.find_texts(members)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        owners = clients_of(clients, len(sizes))

        def respond(part: slice) -> Responses:
            start, stop, _ = part.indices(len(sizes))
            settled = self._buckets.settle(numbers[ends[start] : ends[stop]])
            rows = self._rows(settled, sizes[part])
            return self._respond(rows, owners and owners[part])

        return Batch(len(sizes), owners, respond)

    def _rows(self, settled: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the bits of each value, uint8 (n, bits // 8), from all buckets and each value's `sizes`."""
        rows = np.zeros((len(sizes), self._mechanism.bits // 8), np.uint8)
        bits = np.where(settled == UNKNOWN, 0, 1 << (settled & 7)).astype(np.uint8)
        np.bitwise_or.at(rows, (np.repeat(np.arange(len(sizes)), sizes), settled >> 3), bits)
        return rows

    def _respond(self, rows: NDArray[np.uint8], clients: list[str] | None) -> Responses:
        owners = None if clients is None else self._memory.digest(clients)
        cohorts = np.zeros(len(rows), np.uint16)
        for part in chunks(len(rows), rows.shape[1]):
            rows[part] = self._reports(rows[part], None if owners is None else owners[part])
        return cohorts, rows

    def _reports(self, rows: NDArray[np.uint8], owners: Blocks | None) -> NDArray[np.uint8]:
        kept = self._memory.words(owners, lambda: _row_blocks(rows), self._words)
        if self._mechanism.hot > 1:
            rows = at_most(rows, self._mechanism.hot, kept)
        return instantaneous(permanent(rows, self._mechanism, kept), self._mechanism, self._words)


def _row_blocks(rows: NDArray[np.uint8]) -> list[Blocks]:
    """Cut rows, padded with zeros, into m arrays of blocks, uint64 (n, 2)."""
    count, size = rows.shape
    filled = np.zeros((count, -(-size // BLOCK_BYTES) * BLOCK_BYTES), np.uint8)
    filled[:, :size] = rows
    return list(np.swapaxes(filled.view(np.uint64).reshape(count, -1, 2), 0, 1))
