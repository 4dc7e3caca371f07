"""Describe what is wrong with a field of the collection file: place, allowed values, nearest known name.

Rule: messages show no value of `kafka`, `kafka.security` or `producer.budget_store`, and of an unknown field
only the letters that its name begins with, because a password may be in the wrong place.
"""

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

import msgspec

from deniable.cluster.logins.mechanisms import LoginMechanism
from deniable.config.allowed_values import MECHANISMS, allowed
from deniable.config.entries import BudgetEntry, FieldEntry, GrowEntry
from deniable.config.sections import (
    SECRETS,
    BudgetStoreSection,
    EdgeSection,
    File,
    KafkaSection,
    ProducerSection,
    RelaySection,
    SecuritySection,
)

YamlPath = tuple[str | int, ...]

BUDGET_ADVICE = (
    "write budget: {epsilon: …, delta: …, period_seconds: …}, with values: any or unchanged if it is "
    "memoized, or budget: none, which enforces nothing"
)

_TYPES = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping of fields",
}
_OF_BUDGET = ("delta", "period_seconds", "changes")  # of the budget alone; a mechanism has other ones
_SECRET = ("kafka", "security")
_DATABASE = ("producer", "budget_store")


class PlacedError(ValueError):
    """An error at a place of the document.

    Parameters
    ----------
    place : names of fields and indices, outermost first; empty for the whole document.
    message : for people.
    field : the wrong field of the mapping at that place; empty if the place itself is wrong.
    """

    def __init__(self, place: YamlPath, message: str, field: str = "") -> None:
        self.place = place
        self.field = field
        super().__init__(message)


SECTIONS: Mapping[YamlPath, type[msgspec.Struct]] = {
    (): File,
    ("kafka",): KafkaSection,
    _SECRET: SecuritySection,
    ("producer",): ProducerSection,
    _DATABASE: BudgetStoreSection,
    ("relay",): RelaySection,
    ("edge",): EdgeSection,
}


def explain(error: msgspec.ValidationError, document: object, within: YamlPath = ()) -> PlacedError:
    """Put msgspec's error in words: the place, what is allowed, the value, the nearest known name.

    Parameters
    ----------
    error : of converting the document.
    document : that was converted.
    within : place of the document in the file, if it is a section.
    """
    what, _, path = str(error).partition(" - at `$")
    place: YamlPath = tuple(
        int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path.rstrip("`"))
    )
    whole = within + place
    if match := re.match(r"Object missing required field `(\w+)`", what):
        value = _value_at(document, place)
        if isinstance(value, dict) and (written := _misspelt(match[1], value)):
            return _placed(place, f"unknown field `{written}`; did you mean `{match[1]}`?", written)
        return _placed(place, _missing(match[1], whole))
    if match := re.match(r"Object contains unknown field `(\w*)([^`]?)", what):
        return _placed(place, _unknown(match[1], match[2] != "", _fields(document, whole, within)), match[1])
    if "at `key` in" in what:  # the name of a field is 5, null or the like
        where, name = next(_names_not_text(document))
        got = "another type" if where[:1] == ("kafka",) or where[:2] == _DATABASE else repr(name)
        return PlacedError(where, f"names of fields must be text, got {got}", str(name))
    if what.startswith("Invalid") and whole[:2] == _SECRET:
        return _placed(place, f"must be one of {', '.join(get_args(LoginMechanism))}")
    if what.startswith("Invalid"):
        return _placed(place, _not_listed(place[-1] if place else "", _value_at(document, place)))
    if what.startswith(("Expected", "Number out of range")):
        what = _expected(what.partition(", got ")[0])
        if whole and whole[:2] != _SECRET and (range_ := allowed(whole[-1], "budget" in whole[:-1])):
            what = f"must be {range_}"
        elif whole in SECTIONS:
            what += f": {', '.join(_fields(document, whole, within))}"
        is_open = whole[:1] != ("kafka",) or (len(whole) == 2 and whole != _SECRET)
        if is_open and whole[:2] != _DATABASE:
            value = _value_at(document, place)
            what += ", got nothing" if value is None else f", got {reprlib.repr(value)}"
    return _placed(place, what + _remedy(place))


def _placed(place: YamlPath, what: str, field: str = "") -> PlacedError:
    """Build the error; by rule, a message about a field's range begins with the field's name."""
    return PlacedError(
        place, f"{_dotted(place)}: {what}" if place else what, field or re.split("[ .]", what, maxsplit=1)[0]
    )


def _misspelt(field: str, mapping: Mapping[object, object]) -> str | None:
    """Return the unknown field that was probably meant to be this one, which is missing."""
    known = {"mechanism", *BudgetEntry.__struct_fields__, *File.__struct_fields__}
    known.update(*(entry.__struct_fields__ for entry in MECHANISMS.values()))
    names = (name for name in mapping if isinstance(name, str) and re.fullmatch(r"\w+", name))
    unknown = [name for name in names if name not in known]
    return next(iter(get_close_matches(field, unknown, 1)), None)


def _missing(field: str, place: YamlPath) -> str:
    advice = f"; {BUDGET_ADVICE}" if "budget" in (field, *place) else ""
    return f"field `{field}` is missing; it must be {allowed(field, 'budget' in place)}{advice}"


def _unknown(name: str, is_cut: bool, known: Sequence[str]) -> str:
    shown = f"{name}…" if is_cut else name
    if name in File.__struct_fields__:
        return f"unknown field `{name}`; it belongs at the top level of the file"
    if name in _OF_BUDGET and "budget" in known:
        return f"unknown field `{name}`; it belongs in the mapping `budget`"
    near = get_close_matches(name, known, 1)
    guess = f"; did you mean `{near[0]}`?" if near else "."
    if name == "password" and "url" in known:
        guess = "; a password must not be in the file: set PGPASSWORD, or give passfile=FILE in the url."
    if name == "canary":
        guess = "; a canary is of mechanism k-rr or k-rr-longitudinal."
    return f"unknown field `{shown}`{guess} Known fields: {', '.join(known)}"


def _not_listed(field: str | int, value: object) -> str:
    listed = {
        "values": ["unchanged", "any"],
        "mechanism": list(MECHANISMS),
        "publish": ["top", "all"],
        "budget": ["none"],
        "when_away": ["wait", "drop"],
    }[str(field)]
    if field == "budget":
        return f"must be none, or a mapping, got {value!r}; {BUDGET_ADVICE}"
    near = get_close_matches(str(value), map(str, listed), 1)
    guess = f"; did you mean {near[0]}?" if near else ""
    return f"must be one of {', '.join(map(str, listed))}, got {value!r}{guess}"


def _expected(what: str) -> str:
    """Put `Expected `int | null`` in words."""

    def words(match: re.Match[str]) -> str:
        types = [_TYPES.get(name, name) for name in match[1].split(" | ") if name != "null"]
        return " or ".join(types)

    return re.sub(r"`([a-z |]+)`", words, what).replace("Expected", "must be", 1)


def _remedy(place: YamlPath) -> str:
    if len(place) > 1 and place[-2] in ("values", "candidates"):
        return '; quote it: "…"'
    return f"; {BUDGET_ADVICE}" if "budget" in place else ""


def _fields(document: object, place: YamlPath, within: YamlPath) -> list[str]:
    """Return the names of the known fields at a place."""
    if place[-1:] == ("budget",):
        return list(BudgetEntry.__struct_fields__)
    if place[-1:] == ("grow",):
        return list(GrowEntry.__struct_fields__)
    if place[-2:-1] == ("fields",):
        return list(FieldEntry.__struct_fields__)
    if place in SECTIONS:
        fields = SECTIONS[place].__struct_fields__
        return [
            field for field in fields if within or field not in SECRETS
        ]  # only the environment may set it
    entry = _value_at(document, place[len(within) :])
    return ["mechanism", *MECHANISMS[entry["mechanism"]].__struct_fields__]


def _names_not_text(document: object, place: YamlPath = ()) -> Iterator[tuple[YamlPath, object]]:
    """Yield each field whose name is not text, with the place of its mapping."""
    if isinstance(document, dict):
        yield from ((place, name) for name in document if not isinstance(name, str))
        for name, value in document.items():
            yield from _names_not_text(value, (*place, name))
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from _names_not_text(value, (*place, i))


def _value_at(document: Any, place: YamlPath) -> Any:
    for step in place:
        document = document[step]
    return document


def _dotted(place: YamlPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")
