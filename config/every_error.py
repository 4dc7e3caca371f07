"""Find every mistake in the collection file, not only the first.

Rule: after each mistake the document is mended and checked again. What follows from mending is no mistake.
"""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from deniable.config.problems import PlacedError, YamlPath, explain
from deniable.config.sections import File

MOST_ERRORS = 20
MOST_CHECKS = 100

#: Allowed values of required fields, which take the place of wrong or missing ones.
_BUDGET = {"epsilon": 1, "delta": 1e-6, "period_seconds": 1, "values": "any"}
_FIELD = {"values": ["a"]}
_GRACE_SECONDS = 86_401  # more than relays may take to deliver
_COLLECTION: dict[str, Any] = {
    "window_seconds": 1,
    "grace_seconds": _GRACE_SECONDS,
    "budget": "none",
    "epsilon": 1,
    "epsilon_inf": 2,
    "epsilon_one": 1,
    "bits": 8,
    "hashes": 1,
    "cohorts": 1,
    "hot": 1,
    "minimum": 0,
    "maximum": 1,
    "values": ["a", "b"],
    "lengths": [1, 2],
    "fields": [{"name": "a", "values": ["a"]}, {"name": "b", "values": ["b"]}],
}
_RANGE = {"minimum", "maximum", "steps"}
_NOISE = {"f", "p", "q", "epsilon_inf", "epsilon_one", "memoize", "hashes", "hot", "bits"}
_HASHING = {"epsilon", "hash_functions", "hash_buckets"}
#: Fields of a collection that a contradiction may come from, by a field that its message names.
_RELATED: dict[str, set[str]] = {
    **dict.fromkeys(_NOISE, _NOISE),
    **dict.fromkeys(_RANGE, _RANGE),
    **dict.fromkeys(_HASHING, _HASHING | {"epsilon_inf", "epsilon_one"}),
    "values": {"values", "size", "hot", "other", "publish"},
    "hot": {"values", *_NOISE},
    "canary": {"values", "size", "other", "epsilon", "minimum_reports", *_NOISE},
    "candidates": {"candidates_file", "publish", "lengths"},
    "lengths": {"lengths", "alphabet"},
    "alphabet": {"alphabet"},
    "fields": {"fields", "epsilon", "publish"},
    "field": {"fields", "epsilon"},
}

_STAND_IN = re.compile(r" \(set-aside-\d+\)")

Check = Callable[[File], list[PlacedError]]


def every_error(document: dict[str, Any], check: Check) -> list[PlacedError]:
    """Return the mistakes of a document, up to MOST_ERRORS.

    Parameters
    ----------
    document : of the whole file.
    check : returns the contradictions in a File.
    """
    found = _Mended(copy.deepcopy(document))
    for _ in range(MOST_CHECKS):
        mistakes = list(found.mistakes(check))
        if not all(found.mend(mistake) for mistake in mistakes) or not mistakes:
            break
    return [_without_stand_in(each) for each in found.known[:MOST_ERRORS]]


class _Mended:
    """A document whose wrong fields are replaced or taken out, and the mistakes found so far."""

    def __init__(self, document: Any) -> None:
        self._rest = document
        self._taken: dict[YamlPath, set[str]] = {}
        self.known: list[PlacedError] = []

    def mistakes(self, check: Check) -> Iterator[PlacedError]:
        """Yield what is wrong now, and note those that do not follow from mending."""
        try:
            file = msgspec.convert(self._rest, File)
        except msgspec.ValidationError as error:
            mistake = explain(error, self._rest)
            missing = re.search(r"field `(\w+)` is missing", str(mistake))
            follows = missing is not None and self._is_taken(mistake.place, {missing[1]})
            if not follows and not (
                " needs " in str(mistake) and self._is_taken(mistake.place, _words(mistake))
            ):
                self.known.append(mistake)
            yield mistake
            return
        for mistake in check(file):
            if not self._follows(mistake):
                self.known.append(mistake)
            yield mistake

    def mend(self, mistake: PlacedError) -> bool:
        """Replace or take out the wrong field, or a whole collection; False if that is not possible."""
        missing = re.search(r"field `(\w+)` is missing", str(mistake))
        if missing and self._replace(mistake.place, missing[1]):
            return True
        if not missing and self._take_out(mistake):
            return True
        place = mistake.place
        if len(place) < 2 or place[0] != "collections" or not isinstance(place[1], int):
            return False
        self._rest["collections"][place[1]] = _aside(place[1])
        return True

    def _follows(self, contradiction: PlacedError) -> bool:
        """Return True if a contradiction may come from a field that was replaced."""
        if contradiction.place[:1] == ("kafka",):
            return self._is_taken(("kafka",), {"security", "allow_plaintext"}) or (
                ("kafka", "security") in self._taken
            )
        words = _words(contradiction)
        related = words.union(*(_RELATED[word] for word in words & _RELATED.keys()))
        return self._is_taken(contradiction.place, related)

    def _is_taken(self, place: YamlPath, fields: set[str]) -> bool:
        return bool(self._taken.get(place, set()) & fields)

    def _take_out(self, mistake: PlacedError) -> bool:
        place, field = mistake.place, mistake.field
        if not _has(self._rest, place, field):
            if place and isinstance(place[-1], int) and place[0] == "collections" and len(place) == 2:
                return False  # the whole collection
            while place and isinstance(place[-1], int):  # an element of a list: the list
                place = place[:-1]
            if not place:
                return False
            *above, last = place
            place, field = tuple(above), str(last)
            if not _has(self._rest, place, field):
                return False
        if field == "mechanism":
            return self._guess_mechanism(place, str(mistake))
        value = _at(self._rest, place).pop(field)
        self._taken.setdefault(place, set()).add(field)
        if meant := re.search(r"did you mean `(\w+)`", str(mistake)):
            if meant[1] == "mechanism":
                _at(self._rest, place).setdefault(meant[1], value)
            self._replace(place, meant[1])
        elif "unknown field" not in str(mistake):
            self._replace(place, field)
        return True

    def _guess_mechanism(self, place: YamlPath, said: str) -> bool:
        """Assume the mechanism that was probably meant, so other fields can be checked."""
        meant = re.search(r"did you mean ([a-z-]+)\?", said)
        if meant:
            _at(self._rest, place)["mechanism"] = meant[1]
        return meant is not None

    def _replace(self, place: YamlPath, field: str) -> bool:
        """Set an absent field to an allowed value; False if none is known."""
        mapping = _at(self._rest, place)
        self._taken.setdefault(place, set()).add(field)
        if field == "name":
            value: Any = _aside(place[-1])["name"]
        elif not place and field == "collections":
            value = [_aside(0)]
        elif place[-1:] == ("budget",):
            value = _BUDGET.get(field)
        elif place[-2:-1] == ("fields",):
            value = _FIELD.get(field)
        elif len(place) == 2 and place[0] == "collections":
            value = _COLLECTION.get(field)
            if field == "values" and str(mapping.get("mechanism")).startswith("k-rr") and "size" in mapping:
                value = None
        else:
            value = None
        if value is not None:
            mapping.setdefault(field, value)
        return value is not None


def _without_stand_in(mistake: PlacedError) -> PlacedError:
    """Return the mistake without the name that `_aside` gave to its collection."""
    return PlacedError(mistake.place, _STAND_IN.sub("", str(mistake)), mistake.field)


def _aside(index: object) -> dict[str, Any]:
    """Return a collection without mistakes, with a name that no other has, to keep indices."""
    shape = {"window_seconds": 1, "grace_seconds": _GRACE_SECONDS, "budget": "none", "size": 2, "epsilon": 1}
    return {"mechanism": "k-rr", "name": f"set-aside-{index}", **shape}


def _words(mistake: PlacedError) -> set[str]:
    said = re.sub(r"^collections\[\d+\] \([^)]*\): ", "", str(mistake))
    return set(re.findall(r"\w+", said.partition("; ")[0]))


def _has(document: Any, place: YamlPath, field: str) -> bool:
    mapping = _at(document, place)
    return isinstance(mapping, dict) and field in mapping


def _at(document: Any, place: YamlPath) -> Any:
    for step in place:
        document = document[step]
    return document
