"""Say at a terminal, in coarse words, how many values the collection does not list.

The words depend on true values. So they are shown only at the terminal of whoever holds the input, never
logged, exported or sent; `--strict` alone makes what is sent depend on them.
"""

from collections.abc import Iterable, Sequence

import click

from deploy.produce.input.source import FeedError
from deploy.produce.input.values import Value
from estimators.collection import Collection
from estimators.mechanisms.square_wave import SquareWave

#: Least share of unknown values for each word.
WORDS = ((0.5, "most"), (0.05, "many"), (0.0, "a few (less than 5 %)"))


class UnknownValues:
    """Judges the first values before they are reported, and all in the end.

    Parameters
    ----------
    collection : Collection.
    field : name of the column or field that holds the value.
    is_shown : whether words may be shown on stderr.
    is_strict : whether to stop if most of the first values are unknown.
    """

    def __init__(self, collection: Collection, field: str, *, is_shown: bool, is_strict: bool) -> None:
        self._collection = collection
        self._field = field
        self._is_shown = is_shown and is_listed(collection)
        self._is_strict = is_strict
        self._values = 0
        self._unknown = 0

    def note(self, values: Sequence[Value]) -> None:
        """Take values into account before they are reported; warn, or stop, if most of the first are unknown.

        Raises
        ------
        FeedError if strict.
        """
        are_first = not self._values
        if not (self._is_shown or (self._is_strict and are_first)):
            return
        self._values += len(values)
        self._unknown += unknown_in(self._collection, values)
        if not (are_first and 2 * self._unknown >= self._values > 0):
            return
        name = self._collection.name
        warning = f"most of the first values are not listed for {name}; is --field {self._field} right?"
        if self._is_strict:
            raise FeedError(f"{warning} This run sent nothing")
        click.echo(f"warning: {warning} They are reported as unknown", err=True)

    def summary(self) -> str | None:
        """Return a sentence about all values of the run; None if it may not be shown."""
        if not (self._is_shown and self._values):
            return None
        share = self._unknown / self._values
        word = next((word for least, word in WORDS if share >= least), "") if self._unknown else "none"
        return f"values that {self._collection.name} does not list: {word}"


def is_listed(collection: Collection) -> bool:
    """Whether the collection has a list or range of values; Bloom RAPPOR and local hashing take any text."""
    return (
        bool(collection.values) or collection.takes_integers or isinstance(collection.mechanism, SquareWave)
    )


def unknown_in(collection: Collection, values: Iterable[Value]) -> int:
    """Return how many values the collection does not list, or of which it does not list every text."""
    if not is_listed(collection):
        return 0
    if collection.fields:
        fields = [set(each.values) for each in collection.fields]
        return sum(not _is_known_pair(value, fields) for value in values)
    mechanism, listed = collection.mechanism, set(collection.values)
    if isinstance(mechanism, SquareWave):
        low, high = mechanism.minimum, mechanism.maximum
        return sum(not (isinstance(value, int | float) and low <= value <= high) for value in values)
    return sum(not _is_known(value, listed, collection.entries) for value in values)


def _is_known_pair(value: Value, fields: Sequence[set[str]]) -> bool:
    return isinstance(value, tuple) and all(
        text in listed for text, listed in zip(value, fields, strict=True)
    )


def _is_known(value: Value, listed: set[str], entries: int) -> bool:
    if isinstance(value, int | float):
        return 0 <= value < entries
    return all(text in listed for text in ([value] if isinstance(value, str) else value))
