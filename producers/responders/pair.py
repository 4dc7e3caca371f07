"""Responders of pairs: each of two texts to its bucket, and both into one report."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.producers.randomization.randomizers import randomize_pair
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Batch, Responses, chunks
from deniable.producers.responders.buckets import Buckets
from deniable.producers.responders.rappor import HotResponder
from deniable.producers.responders.validation import clients_of, has_list, texts
from deniable.protocol.notation import UNKNOWN, is_missing, is_value, text_of
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import bucket_dtype

NUMBER_BYTES = 16  # of the two numbers of a pair


def text_pairs(collection: Collection, given: object) -> tuple[list[str], list[str]]:
    """Return values that are pairs, as the texts of the first and of the second ones.

    Parameters
    ----------
    collection : a pair of fields.
    given : one tuple or list of two values, or a list, tuple or one-dimensional array of such; a missing
        pair, or a missing value, is unknown.

    Raises
    ------
    TypeError if it is or holds anything else, as `no_pair` says.
    """
    several = f", or [{example_pair(collection)}] for several"
    as_list = "; .tolist() makes such a list" if has_list(given) else ""
    if _is_one_pair(given) or is_missing(given):
        listed: list[Any] = [given]
    elif isinstance(given, tuple | list) or (isinstance(given, np.ndarray) and given.ndim == 1):
        listed = list(given)
    else:
        raise no_pair(collection, given, several + as_list)
    listed = [(None, None) if is_missing(item) else item for item in listed]
    for item in listed:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise no_pair(collection, item, several)
    firsts, seconds = [item[0] for item in listed], [item[1] for item in listed]
    try:
        return texts("", firsts), texts("", seconds)
    except TypeError:
        raise no_pair(collection, next(pair for pair in listed if not _are_values(pair)), several) from None


def text_pair(collection: Collection, value: object) -> tuple[str, str]:
    """Return the texts of one pair, of type `str` itself; TypeError as `no_pair` says if it is none."""
    pair = tuple(value) if isinstance(value, tuple | list) else (None, None) if is_missing(value) else ()
    if len(pair) != 2 or not _are_values(pair):
        raise no_pair(collection, value)
    return text_of(pair[0]), text_of(pair[1])


def no_pair(collection: Collection, given: object, several: str = "") -> TypeError:
    """Return the error of what is no pair: both fields, the types given, and what would be one.

    Parameters
    ----------
    collection : a pair of fields.
    given : only its type is shown, or those of two items, or the number of other items.
    several : how to give several values, where that is possible.
    """
    kind = type(given).__name__
    if isinstance(given, tuple | list):
        kinds = [type(item).__name__ for item in given]
        kind += f" of {' and '.join(kinds)}" if len(kinds) == 2 else f" of {len(kinds)}"
    names = ", ".join(field.name for field in collection.fields)
    return TypeError(
        f"a value of {collection.name} must be a tuple or list of two values, ({names}), got {kind}; "
        f"for example {example_pair(collection)}{several}"
    )


def example_pair(collection: Collection) -> tuple[str, ...]:
    """Return the first value that the collection file lists for each field, whatever is reported."""
    return tuple(field.values[0] for field in collection.fields)


def _is_one_pair(given: object) -> bool:
    """Whether it is meant as one pair: several contain no value themselves, but pairs."""
    if not isinstance(given, tuple | list) or any(isinstance(item, tuple | list) for item in given[:2]):
        return False
    return any(map(is_value, given[:2]))


def _are_values(items: Iterable[object]) -> bool:
    return all(map(is_value, items))


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
