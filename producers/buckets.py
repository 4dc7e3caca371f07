"""True values to bucket numbers, for k-RR."""

import threading

import numpy as np
from numpy.typing import NDArray

from estimators.collection import Collection
from producers.inputs import integers, texts
from producers.randomness import Words, below

UNKNOWN = -1


class Buckets:
    """Bucket numbers of one k-RR collection.

    A listed value has its index, an integer of a collection without a list is its own number. Any other value
    has the last bucket where the collection says `other`, else a uniformly random one: nothing is refused or
    left out because of what it is.

    Parameters
    ----------
    collection : Collection with a KRR mechanism.
    """

    def __init__(self, collection: Collection) -> None:
        self._what = f"values of {collection.name}"
        self._k = collection.width
        self._known = collection.width - collection.other
        self._other = collection.other
        self._index = {value: index for index, value in enumerate(collection.values)}
        self._lock = threading.Lock()
        self._unknown = 0

    @property
    def unknown(self) -> int:
        """Values placed so far that were unknown. It depends on true values: never to leave this machine."""
        return self._unknown

    def find(self, values: object) -> NDArray[np.int64]:
        """Number of each value, int64 (n,), in [0, k) or UNKNOWN.

        Parameters
        ----------
        values : one value or many: text where the collection lists its values, else integers of any size.

        Raises
        ------
        TypeError if a value is of another type.
        """
        if self._index:
            listed = texts(self._what, values)
            return np.fromiter((self._index.get(value, UNKNOWN) for value in listed), np.int64, len(listed))
        numbers = integers(self._what, values)
        if isinstance(numbers, np.ndarray):
            return np.where((numbers >= 0) & (numbers < self._known), numbers, UNKNOWN).astype(np.int64)
        found = (number if 0 <= number < self._known else UNKNOWN for number in numbers)
        return np.fromiter(found, np.int64, len(numbers))

    def place(self, numbers: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Replace UNKNOWN by the bucket `other` or a uniformly random one; int64 (n,), in [0, k)."""
        # Drawn whether needed or not, so that the work does not depend on the values.
        substitute = below(words.words64(len(numbers)), self._k).astype(np.int64)
        if self._other:
            substitute[:] = self._k - 1
        unknown = numbers == UNKNOWN
        with self._lock:
            self._unknown += int(unknown.sum())
        return np.where(unknown, substitute, numbers)
