"""What a line says, as the collection takes it.

Whether a report is sent must not depend on what its value is: one that is empty, no number or of another type
becomes a value that the collection does not know, and is sent like any other.
"""

import json
from collections.abc import Callable
from typing import Any

from estimators.collection import Collection
from estimators.mechanisms.rappor_hot import HotRappor

NO_INTEGER = -1  # no collection lists it

Value = str | int | list[str]


def takes_several(collection: Collection) -> bool:
    """Whether one value is made of several texts."""
    return isinstance(collection.mechanism, HotRappor) and collection.mechanism.hot > 1


def value_reader(collection: Collection, layout: str) -> Callable[[Any], Value]:
    """How to read a value of this collection out of `csv` or `jsonl`."""
    if takes_several(collection):
        return texts
    if collection.takes_integers:
        return written_integer if layout == "csv" else integer
    return text


def text(found: Any) -> str:
    """A text; anything else as JSON."""
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))


def integer(found: Any) -> int:
    """An integer; NO_INTEGER for anything else."""
    return found if isinstance(found, int) and not isinstance(found, bool) else NO_INTEGER


def written_integer(found: str) -> int:
    """An integer in digits 0 to 9, with a sign, zeros before it and spaces around it; else NO_INTEGER."""
    try:
        return int(found) if found.isascii() and "_" not in found else NO_INTEGER
    except ValueError:
        return NO_INTEGER


def texts(found: Any) -> list[str]:
    """The texts of a list; anything else is a list of itself."""
    return [text(each) for each in found] if isinstance(found, list) else [text(found)]
