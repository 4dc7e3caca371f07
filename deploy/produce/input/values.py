"""Convert a field of a line to a value of the collection, which `protocol.notation` then reads.

Whether a report is sent must not depend on its value: one that is empty, not a number or of another type
becomes a value that the collection does not know, and is sent like any other.

Where any text is asked for, CSV writes as a text what JSON has as a number: 1 is `1.0` beside an empty cell.
So in files a text may mean a candidate, as one of a list would.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from deniable.estimators.collection import Collection
from deniable.protocol.notation import UNKNOWN, ListedTexts, text_of

One = str | float | None
Value = One | list[One] | tuple[One, One]


def takes_several(collection: Collection) -> bool:
    """Whether one value consists of several."""
    return collection.takes_several


def takes_two(collection: Collection) -> bool:
    """Whether one value consists of those of two fields."""
    return bool(collection.fields)


def value_reader(collection: Collection) -> Callable[[Any], Value]:
    """Return the function that reads a value of this collection."""
    if collection.takes_any_text:
        listed = ListedTexts(collection.candidates)
        return candidate_reader(listed, collection.candidates) if listed.has_numbers else one
    return several if takes_several(collection) else pair if takes_two(collection) else one


def candidate_reader(listed: ListedTexts, candidates: Sequence[str]) -> Callable[[Any], One]:
    """Return `one`, but the candidate that a value means in its place: rule 4 of `protocol.notation`."""

    def read(found: Any) -> One:
        value = one(found)
        index = listed.find(text_of(value))
        return value if index == UNKNOWN else candidates[index]

    return read


def one(found: Any) -> One:
    """Return what is no array or object; these as JSON, or as missing if they are nested too deep."""
    if found is None or isinstance(found, str | int | float):
        return found
    try:
        return json.dumps(found, separators=(",", ":"))
    except RecursionError:  # the parser goes deeper
        return None


def pair(found: tuple[Any, Any]) -> tuple[One, One]:
    """Return the values of two fields."""
    return one(found[0]), one(found[1])


def several(found: Any) -> list[One]:
    """Return the values of a list; anything else as a list of itself."""
    return [one(item) for item in found] if isinstance(found, list) else [one(found)]
