"""Responder of subset selection."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.producers.randomization.randomizers import randomize_subsets
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Responses, chunks
from deniable.producers.responders.buckets import Buckets
from deniable.producers.responders.validation import clients_of

WORD_BYTES = 8  # drawn for each value of a report


class SubsetResponder:
    """Subset selection: one cohort and no permanent responses, so clients do not matter."""

    def __init__(self, collection: Collection, mechanism: SubsetSelection, words: Words) -> None:
        self._buckets = Buckets(collection, mechanism.buckets)
        self._mechanism = mechanism
        self._words = words

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not list."""
        return self._buckets.unknown

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        numbers = self._buckets.find(values)
        owners = clients_of(clients, len(numbers))
        return Batch(len(numbers), owners, lambda part: self._respond(numbers[part]))

    def _respond(self, numbers: NDArray[np.int64]) -> Responses:
        settled = self._buckets.settle(numbers)
        rows = np.empty((len(numbers), self._mechanism.bits // 8), np.uint8)
        for part in chunks(len(numbers), WORD_BYTES * self._mechanism.bits):
            placed = self._buckets.place(settled[part], self._words)
            rows[part] = randomize_subsets(placed, self._mechanism, self._words)
        return np.zeros(len(rows), np.uint16), rows
