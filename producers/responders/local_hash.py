"""Responders of local hashing: any text, hashed by a function of each report, or of its client."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.producers.randomization.permanent_responses import Blocks, Memory, number_blocks
from deniable.producers.randomization.randomizers import randomize_hashed, randomize_krr
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Deferred, Responses, chunks, in_one_cohort
from deniable.producers.responders.validation import clients_of, different_texts
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import bucket_dtype

NUMBER_BYTES = 8


class HashResponder:
    """Local hashing: one cohort and no permanent responses, so clients do not matter; no text is unknown."""

    unknown = 0

    def __init__(self, collection: Collection, mechanism: LocalHash, words: Words) -> None:
        self._what = f"values of {collection.name}"
        self._functions = hash_functions_of(mechanism, collection.hash_key)
        self._response = mechanism.response
        self._dtype = bucket_dtype(mechanism.width)
        self._words = words

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        different, number = different_texts(self._what, values)
        owners = clients_of(clients, len(number))
        hashed = cache(lambda: self._functions.words(different))  # on first use, for all parts
        return Batch(len(number), owners, lambda part: self._respond(hashed(), number[part]))

    def _respond(self, hashed: NDArray[np.uint64], number: NDArray[np.int64]) -> Responses:
        reports = np.empty(len(number), self._dtype)
        for part in chunks(len(number), NUMBER_BYTES):
            words = hashed.take(number[part])
            reports[part] = randomize_hashed(words, self._functions, self._response, self._words)
        return in_one_cohort(reports)


class LongitudinalHashResponder:
    """Longitudinal local hashing: a client's function, its permanent response of each bucket, a fresh report.

    Responses are always memoized, and no text is unknown. Values with the same bucket have the same response.
    """

    unknown = 0

    def __init__(
        self, collection: Collection, mechanism: LongitudinalHash, secret: Secret, words: Words
    ) -> None:
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        self._functions = hash_functions_of(mechanism, collection.hash_key)
        parameters = tuple(mechanism.permanent_parameters().values())
        self._memory = Memory(secret, collection.name, parameters, memoize=True)
        self._words = words

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        different, number = different_texts(self._what, values)
        listed = clients_of(clients, len(number))
        # Each is computed on first use, for all parts.
        hashed = cache(lambda: self._functions.words(different))
        if listed is None:
            return Batch(len(number), None, lambda part: self._respond(hashed(), number[part], None))
        owners = cache(lambda: self._memory.digest(listed))
        return Batch(
            len(number),
            listed,
            lambda part: self._respond(hashed(), number[part], owners()[part]),
            lambda part: self._deferred(hashed(), number[part], owners()[part]),
        )

    def _deferred(
        self, hashed: NDArray[np.uint64], number: NDArray[np.int64], owners: Blocks
    ) -> tuple[Responses, Deferred]:
        _, buckets = self._bucketed(hashed.take(number), owners)
        zeros = np.zeros(len(number), bucket_dtype(self._mechanism.width))
        return in_one_cohort(zeros), Deferred(1 + self._turned(buckets, owners, 1), owners, self._respond_to)

    def _respond_to(self, turned: NDArray[np.int64], owners: Blocks) -> NDArray[np.uint8]:
        """Make reports of the buckets of a `Deferred`."""
        reports = np.empty(len(turned), bucket_dtype(self._mechanism.width))
        for part in chunks(len(turned), NUMBER_BYTES):
            kept = owners[part]
            buckets = self._turned(turned[part] - 1, kept, -1)
            reports[part] = self._shown(self._functions_of(kept, len(kept)), buckets, kept)
        return in_one_cohort(reports)[1]

    def _turned(self, buckets: NDArray[np.int64], owners: Blocks, sign: int) -> NDArray[np.int64]:
        """Turn each client's buckets by its own number, or back: alone, a stored bucket is uniform."""
        g = self._mechanism.hash_buckets
        return (buckets + sign * self._memory.turns(owners, g)) % g

    def _respond(
        self, hashed: NDArray[np.uint64], number: NDArray[np.int64], owners: Blocks | None
    ) -> Responses:
        reports = np.empty(len(number), bucket_dtype(self._mechanism.width))
        for part in chunks(len(number), NUMBER_BYTES):
            words = hashed.take(number[part])
            reports[part] = self._reports(words, None if owners is None else owners[part])
        return in_one_cohort(reports)

    def _reports(self, words: NDArray[np.uint64], owners: Blocks | None) -> NDArray[np.int64]:
        function, buckets = self._bucketed(words, owners)
        return self._shown(function, buckets, owners)

    def _bucketed(
        self, words: NDArray[np.uint64], owners: Blocks | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        function = self._functions_of(owners, len(words))
        return function, self._functions.buckets(words, function)

    def _functions_of(self, owners: Blocks | None, count: int) -> NDArray[np.int64]:
        # A client's function is drawn like a cohort: uniformly, and by nothing but the client.
        drawn = self._memory.cohorts(owners, count, self._mechanism.hash_functions, self._words)
        return drawn.astype(np.int64)

    def _shown(
        self, function: NDArray[np.int64], buckets: NDArray[np.int64], owners: Blocks | None
    ) -> NDArray[np.int64]:
        mechanism = self._mechanism
        kept = self._memory.words(owners, lambda: [number_blocks(buckets)], self._words)
        responses = randomize_krr(buckets, mechanism.permanent, kept)
        shown = randomize_krr(responses.astype(np.int64), mechanism.instantaneous, self._words)
        return function * mechanism.hash_buckets + shown
