"""Map true values to bucket numbers, for k-RR, longitudinal k-RR and RAPPOR without hashing."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.producers.concurrency.synchronization import AtomicSum
from deniable.producers.randomization.randomness import Words, below
from deniable.producers.responders.validation import integers, texts
from deniable.protocol.notation import UNKNOWN, ListedTexts


class Buckets:
    """Bucket numbers of one collection.

    A listed value has its index; in a collection without a list, an integer is its own number. Any other
    value has the last bucket if the collection has `other`; no value is refused or left out.

    Parameters
    ----------
    collection : Collection whose mechanism hashes nothing.
    size : its number of buckets, `other` included.

    Attributes
    ----------
    meaning : of the numbers: equal for two collections only if every value has the same number in both.
    """

    def __init__(self, collection: Collection, size: int) -> None:
        self._what = f"values of {collection.name}"
        self._size = size
        self._known = size - collection.other
        self._other = collection.other
        self._listed = ListedTexts(collection.values)
        self._takes_integers = not collection.values
        self._unknown = AtomicSum()
        self.meaning: tuple[str | int, ...] = (size, collection.other, *collection.values)

    @property
    def unknown(self) -> int:
        """Number of unknown values so far. It depends on true values and must not leave this machine."""
        return self._unknown.value

    def find(self, values: object) -> NDArray[np.int64]:
        """Return the bucket of each value, int64 (n,), in [0, size) or UNKNOWN.

        Parameters
        ----------
        values : one value or many.

        Raises
        ------
        TypeError if one is of a type that no value has.
        """
        if not self._takes_integers:
            return self.find_texts(texts(self._what, values))
        numbers = integers(self._what, values)
        # A negative number wraps to 2^63 or more.
        inside = numbers.astype(np.uint64) < np.uint64(self._known)
        return np.where(inside, numbers.astype(np.int64, copy=False), UNKNOWN)

    def find_texts(self, values: list[str]) -> NDArray[np.int64]:
        """Like `find`, for values known to be text."""
        return self._listed.find_all(values)

    def settle(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count unknown values, and give them the bucket `other` if there is one; else they stay UNKNOWN."""
        unknown = numbers == UNKNOWN
        self._unknown.add(int(np.count_nonzero(unknown)))
        return np.where(unknown, self._known, numbers) if self._other else numbers

    def place(self, numbers: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Give remaining UNKNOWN values a uniformly random bucket; int64 (n,), in [0, size)."""
        if self._other:
            return numbers
        # Drawn even if not needed, so that later words do not depend on the values.
        anywhere = below(words.words64(numbers.shape), self._size).astype(np.int64)
        return np.where(numbers == UNKNOWN, anywhere, numbers)
