"""Convert a field of a line to a value of the collection.

Whether a report is sent must not depend on its value: one that is empty, not a number or of another type
becomes a value that the collection does not know, and is sent like any other.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

NO_INTEGER = -1  # no collection lists it

Value = str | int | float | list[str] | tuple[str, str]


def takes_several(collection: Collection) -> bool:
    """Whether one value consists of several texts."""
    return isinstance(collection.mechanism, HotRappor) and collection.mechanism.hot > 1


def takes_two(collection: Collection) -> bool:
    """Whether one value consists of the texts of two fields."""
    return bool(collection.fields)


def value_reader(collection: Collection, layout: str) -> Callable[[Any], Value]:
    """Return the function that reads a value of this collection from `csv` or `jsonl`."""
    if takes_several(collection):
        return texts
    if takes_two(collection):
        return text_pair
    if isinstance(collection.mechanism, SquareWave):
        return written_number if layout == "csv" else number
    if collection.takes_integers:
        return written_integer if layout == "csv" else integer
    return text


def text(found: Any) -> str:
    """Return a text; anything else as JSON, and what is nested too deep as null."""
    try:
        return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))
    except RecursionError:  # the parser goes deeper
        return "null"


def text_pair(found: tuple[Any, Any]) -> tuple[str, str]:
    """Return the texts of two fields."""
    return text(found[0]), text(found[1])


def integer(found: Any) -> int:
    """Return an integer; NO_INTEGER for anything else."""
    return found if isinstance(found, int) and not isinstance(found, bool) else NO_INTEGER


def written_integer(found: str) -> int:
    """Parse an integer of digits 0 to 9, with optional sign, leading zeros and spaces; else NO_INTEGER."""
    try:
        return int(found) if found.isascii() and "_" not in found else NO_INTEGER
    except ValueError:
        return NO_INTEGER


def number(found: Any) -> float:
    """Return a number; NaN for anything else."""
    if not isinstance(found, int | float) or isinstance(found, bool):
        return math.nan
    try:
        return float(found)
    except OverflowError:
        return math.inf if found > 0 else -math.inf


def written_number(found: str) -> float:
    """Parse a decimal number such as -1.5e3, with optional spaces; else NaN."""
    try:
        return float(found) if found.isascii() and "_" not in found else math.nan
    except ValueError:
        return math.nan


def texts(found: Any) -> list[str]:
    """Return the texts of a list; anything else as a list of itself."""
    return [text(each) for each in found] if isinstance(found, list) else [text(found)]
