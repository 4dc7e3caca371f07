"""Responders of pairs: each of two texts to its bucket, and both into one report."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from estimators.collection import Collection
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from producers.randomization.randomizers import randomize_pair
from producers.randomization.randomness import Words
from producers.randomization.secret import Secret
from producers.responders.batch import Batch, Responses, chunks
from producers.responders.buckets import UNKNOWN, Buckets
from producers.responders.rappor import HotResponder
from producers.responders.validation import clients_of, text_pairs
from producers.wire import bucket_dtype

NUMBER_BYTES = 16  # of the two numbers of a pair


class FieldBuckets:
    """The buckets of both fields of a pair."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.first, self.second = (
            Buckets(replace(collection, values=field.values, other=field.other, fields=()), len(field.labels))
            for field in collection.fields
        )

    @property
    def unknown(self) -> int:
        """Texts so far that their field does not list. It depends on true values: never export it."""
        return self.first.unknown + self.second.unknown

    def find(self, values: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Look n tuples of two texts up: int64 (n,) for each field, as `Buckets.find_texts`."""
        firsts, seconds = text_pairs(self._collection, values)
        return self.first.find_texts(firsts), self.second.find_texts(seconds)


class PairResponder:
    """k-RR of two fields: one cohort and no permanent responses, so clients do not matter.

    A text that its field does not list has the field's bucket `other`, or a uniformly random one.
    """

    def __init__(self, collection: Collection, mechanism: PairKRR, words: Words) -> None:
        self._mechanism = mechanism
        self._words = words
        self._fields = FieldBuckets(collection)

    @property
    def unknown(self) -> int:
        """Texts so far that their field does not list. It depends on true values: never export it."""
        return self._fields.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder; a value is a tuple of two texts."""
        first, second = self._fields.find(values)
        owners = clients_of(clients, len(first))
        return Batch(len(first), owners, lambda part: self._respond(first[part], second[part]))

    def _respond(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Responses:
        first, second = self._fields.first.settle(first), self._fields.second.settle(second)
        reports = np.empty(len(first), bucket_dtype(self._mechanism.width))
        for part in chunks(len(first), NUMBER_BYTES):
            placed = self._fields.first.place(first[part], self._words)
            other = self._fields.second.place(second[part], self._words)
            reports[part] = randomize_pair(placed, other, self._mechanism, self._words)
        return np.zeros(len(reports), np.uint16), reports.view(np.uint8).reshape(-1, reports.itemsize)


class HotPairResponder(HotResponder):
    """A bit for each pair of texts: one cohort and no permanent responses, so clients do not matter.

    A text that its field does not list has the field's bucket `other`; without one, the pair has no bit.
    """

    def __init__(self, collection: Collection, mechanism: OneHotPair, secret: Secret, words: Words) -> None:
        super().__init__(collection, mechanism, secret, words)
        self._fields = FieldBuckets(collection)
        self._columns = mechanism.columns

    @property
    def unknown(self) -> int:
        """Texts so far that their field does not list. It depends on true values: never export it."""
        return self._fields.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder; a value is a tuple of two texts."""
        first, second = self._fields.find(values)
        owners = clients_of(clients, len(first))

        def respond(part: slice) -> Responses:
            row, column = self._fields.first.settle(first[part]), self._fields.second.settle(second[part])
            is_unlisted = (row == UNKNOWN) | (column == UNKNOWN)
            cells = np.where(is_unlisted, UNKNOWN, row * self._columns + column)
            rows = self._rows(cells, np.ones(len(cells), np.int64))
            return self._respond(rows, owners and owners[part])

        return Batch(len(first), owners, respond)
