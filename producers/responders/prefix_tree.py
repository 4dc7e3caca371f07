"""Responder of a prefix tree: the prefix of any text, as long as the client's level, by local hashing."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, utf_8
from deniable.producers.randomization.permanent_responses import Memory
from deniable.producers.randomization.randomizers import randomize_hashed
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Responses, chunks
from deniable.producers.responders.validation import clients_of, different_texts
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import bucket_dtype

NUMBER_BYTES = 8


class PrefixTreeResponder:
    """A client keeps its level, drawn like a cohort, whatever its values are; no text is unknown."""

    unknown = 0

    def __init__(self, collection: Collection, mechanism: PrefixTree, secret: Secret, words: Words) -> None:
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        self._functions = hash_functions_of(mechanism.oracle, collection.hash_key)
        self._memory = Memory(secret, collection.name, (), memoize=False)
        self._dtype = bucket_dtype(mechanism.width)
        self._words = words

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        different, number = different_texts(self._what, values)
        listed = clients_of(clients, len(number))
        # Each is computed on first use, for all parts.
        hashed = cache(lambda: self._hashed(different))
        owners = cache(lambda: None if listed is None else self._memory.digest(listed))

        def respond(part: slice) -> Responses:
            blocks, count = owners(), len(number[part])
            of_part = None if blocks is None else blocks[part]
            levels = self._memory.cohorts(of_part, count, self._mechanism.cohorts, self._words)
            reports = self._reports(hashed(), levels, number[part])
            return levels, reports.view(np.uint8).reshape(count, reports.itemsize)

        return Batch(len(number), listed, respond)

    def _hashed(self, different: list[str]) -> NDArray[np.uint64]:
        """Words of the prefixes of distinct values, uint64 (levels, values)."""
        mechanism, texts = self._mechanism, [utf_8(each) for each in different]
        return np.stack([
            mechanism.words([mechanism.prefix(each, level) for each in texts], level, self._functions)
            for level in range(mechanism.cohorts)
        ])  # fmt: skip

    def _reports(
        self, hashed: NDArray[np.uint64], levels: NDArray[np.uint16], number: NDArray[np.int64]
    ) -> NDArray[np.unsignedinteger]:
        reports = np.empty(len(number), self._dtype)
        for part in chunks(len(number), NUMBER_BYTES):
            words = hashed[levels[part].astype(np.int64), number[part]]
            response = self._mechanism.response
            reports[part] = randomize_hashed(words, self._functions, response, self._words)
        return reports
