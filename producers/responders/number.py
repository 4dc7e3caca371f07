"""Responder of Square Wave: numbers to cells of their range, and these to reported cells."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.concurrency.synchronization import AtomicSum
from deniable.producers.randomization.randomizers import randomize_square_wave
from deniable.producers.randomization.randomness import Words, below
from deniable.producers.responders.batch import Batch, Responses, chunks
from deniable.producers.responders.validation import clients_of, numbers
from deniable.protocol.wire import bucket_dtype

NUMBER_BYTES = 8


class NumberResponder:
    """Square Wave: one cohort and no permanent responses, so clients do not matter.

    No number is refused or left out, because that would depend on it: one beyond the range counts as the
    nearest end, and NaN as a uniformly random cell. Both are unknown values.
    """

    def __init__(self, collection: Collection, mechanism: SquareWave, words: Words) -> None:
        self._what = f"values of {collection.name}"
        self._mechanism = mechanism
        self._words = words
        self._unknown = AtomicSum()

    @property
    def unknown(self) -> int:
        """Values so far that are outside the range. It depends on true values: never export it."""
        return self._unknown.value

    def prepare(self, values: object, clients: object) -> Batch:
        """As Responder."""
        given = numbers(self._what, values)
        owners = clients_of(clients, len(given))
        return Batch(len(given), owners, lambda part: self._respond(given[part]))

    def _respond(self, given: FloatArray) -> Responses:
        reports = np.empty(len(given), bucket_dtype(self._mechanism.width))
        for part in chunks(len(given), NUMBER_BYTES):
            reports[part] = randomize_square_wave(self._cells(given[part]), self._mechanism, self._words)
        return np.zeros(len(reports), np.uint16), reports.view(np.uint8).reshape(-1, reports.itemsize)

    def _cells(self, given: FloatArray) -> NDArray[np.int64]:
        inside = (given >= self._mechanism.minimum) & (given <= self._mechanism.maximum)
        self._unknown.add(len(given) - int(np.count_nonzero(inside)))
        # Drawn even if not needed, so that later words do not depend on the values.
        anywhere = below(self._words.words64(given.shape), self._mechanism.steps).astype(np.int64)
        is_number = ~np.isnan(given)
        return np.where(is_number, self._mechanism.cells(np.where(is_number, given, 0.0)), anywhere)
