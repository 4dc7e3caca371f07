"""Find every mistake in the collection file, not only the first."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from deploy.config.problems import PlacedError, YamlPath, explain
from deploy.config.sections import File

MOST_ERRORS = 20


def every_error(document: dict[str, Any]) -> Iterator[PlacedError]:
    """Yield the mistakes that prevent a document from being a File, up to MOST_ERRORS.

    After each, the wrong field is taken out and the rest is tried again. What follows from taking it out is
    not a mistake of the file: such an entry is set aside.
    """
    rest, taken = copy.deepcopy(document), set[tuple[YamlPath, str]]()
    found = 0
    while found < MOST_ERRORS:
        try:
            msgspec.convert(rest, File)
            return
        except msgspec.ValidationError as error:
            mistake = explain(error, rest)
        missing = re.search(r"field `(\w+)` is missing", str(mistake))
        is_ours = missing is not None and (mistake.place, missing[1]) in taken
        if not is_ours:
            found += 1
            yield mistake
        is_mended = missing is None and _take_out(rest, mistake, taken)
        if not is_mended and not _set_aside(rest, mistake.place):
            return


def _take_out(document: Any, mistake: PlacedError, taken: set[tuple[YamlPath, str]]) -> bool:
    """Remove the wrong field; False if that is not possible."""
    place, field = mistake.place, mistake.field
    if not _has(document, place, field):
        while place and isinstance(place[-1], int):  # an element of a list: the list
            place = place[:-1]
        if not place:
            return False
        *above, last = place
        place, field = tuple(above), str(last)
        if not _has(document, place, field):
            return False
    _at(document, place).pop(field)
    taken.add((place, field))
    if meant := re.search(r"did you mean `(\w+)`", str(mistake)):
        taken.add((place, meant[1]))  # so it is not missing
    return True


def _has(document: Any, place: YamlPath, field: str) -> bool:
    mapping = _at(document, place)
    return isinstance(mapping, dict) and field in mapping


def _set_aside(document: Any, place: YamlPath) -> bool:
    """Replace a collection that cannot be mended by one without mistakes, so indices stay; else False."""
    if len(place) < 2 or place[0] != "collections":
        return False
    document["collections"][place[1]] = {
        "mechanism": "k-rr",
        "name": "x",
        "size": 2,
        "epsilon": 1,
        "window_seconds": 1,
        "grace_seconds": 0,
        "budget": "none",
    }
    return True


def _at(document: Any, place: YamlPath) -> Any:
    for step in place:
        document = document[step]
    return document
