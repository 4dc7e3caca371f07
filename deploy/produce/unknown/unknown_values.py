"""Say at a terminal, in coarse words, how many values the collection does not list.

The words depend on true values. So they are shown only at the terminal of whoever holds the input, never
logged, exported or sent; `--strict` alone makes what is sent depend on them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from deniable.deploy.cli.input_text import printable
from deniable.deploy.produce.input.source import FeedError
from deniable.deploy.produce.input.values import Value, takes_several
from deniable.estimators.collection import Collection
from deniable.protocol.notation import UNKNOWN, ListedTexts, integer_of, number_of, text_of

#: Least share of unknown values for each word.
WORDS = ((0.5, "most"), (0.05, "many"), (0.0, "a few (less than 5 %)"))


class UnknownValues:
    """Judges the first values before they are reported, and all in the end.

    Parameters
    ----------
    collection : Collection.
    field : name of the column or field that holds the value.
    second_field : name of that with the second text of a pair; None for other collections.
    is_shown : whether words may be shown on stderr.
    is_strict : whether to stop if most of the first values are unknown.
    """

    def __init__(
        self,
        collection: Collection,
        field: str,
        second_field: str | None = None,
        *,
        is_shown: bool,
        is_strict: bool,
    ) -> None:
        self._collection = collection
        self._options = value_options(field, second_field)
        self._is_shown = is_shown
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
        unlisted, consequence = f"not listed for {name}", "They are reported as unknown"
        if (number := self._collection.number) is not None:
            unlisted = f"no numbers in [{number.minimum:g}, {number.maximum:g}], the range of {name}"
            consequence = "Numbers beyond it count as its nearest end, all else as a random step"
        elif not is_listed(self._collection):
            unlisted, consequence = "missing or empty", "They are reported as such"
        doubtful = self._doubtful_options(values)
        verb = "is" if len(doubtful) == 1 else "are"
        warning = f"most of the first values are {unlisted}; {verb} {' and '.join(doubtful)} right?"
        if self._is_strict:
            raise FeedError(f"{warning} Nothing of the input was used")
        click.echo(f"warning: {warning} {consequence}", err=True)

    def _doubtful_options(self, values: Sequence[Value]) -> list[str]:
        """Return the options of fields most of whose texts are unlisted; all if none, or not to be shown."""
        fields = self._collection.fields
        if not (fields and self._is_shown):
            return self._options
        listed = [listed_by(each.values) for each in fields]
        unknown = [
            sum(not (isinstance(value, tuple) and is_in(value[place])) for value in values)
            for place, is_in in enumerate(listed)
        ]
        doubtful = [
            option for option, count in zip(self._options, unknown, strict=True) if 2 * count >= len(values)
        ]
        return doubtful or self._options

    def summary(self) -> str | None:
        """Return a sentence about all values of the run; None if it may not be shown."""
        if not (self._is_shown and self._values):
            return None
        share = self._unknown / self._values
        word = next((word for least, word in WORDS if share >= least), "") if self._unknown else "none"
        if self._collection.number is not None:
            return f"values that are no numbers in the range of {self._collection.name}: {word}"
        if not is_listed(self._collection):
            return f"values that are missing or empty for {self._collection.name}: {word}"
        return f"values that {self._collection.name} does not list: {word}"


def value_options(field: str, second_field: str | None) -> list[str]:
    """Return the options that name the fields of values, as given."""
    named = {"--field": field, "--second-field": second_field}
    return [f"{option} {printable(name)}" for option, name in named.items() if name is not None]


def is_listed(collection: Collection) -> bool:
    """Whether the collection has a list or range of values; Bloom RAPPOR and local hashing take any text."""
    return not collection.takes_any_text


def known_by(collection: Collection) -> Callable[[Any], bool]:
    """Return the function that says whether a collection knows a value, and all its parts.

    Where any text is a value, it knows all but what is missing or empty.
    """
    if not is_listed(collection):
        return lambda value: value not in (None, "")
    if (number := collection.number) is not None:
        return lambda value: number.minimum <= number_of(value) <= number.maximum
    if collection.takes_integers:
        return lambda value: 0 <= integer_of(value) < collection.entries
    if collection.fields:
        fields = [listed_by(each.values) for each in collection.fields]
        return lambda value: all(is_in(part) for is_in, part in zip(fields, value, strict=True))
    is_in = listed_by(collection.values)
    if takes_several(collection):
        return lambda value: all(map(is_in, value))
    return is_in


def listed_by(values: Iterable[str]) -> Callable[[object], bool]:
    """Return the function that says whether a value means one of these."""
    listed = ListedTexts(values)
    return lambda value: listed.find(text_of(value)) != UNKNOWN


def unknown_in(collection: Collection, values: Iterable[Value]) -> int:
    """Return how many values the collection does not know, or of which it does not know every part."""
    is_known = known_by(collection)
    return sum(not is_known(value) for value in values)
