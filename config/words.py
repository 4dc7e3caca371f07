"""What a type of the collection file allows, in words, and what messages say of a wrong or unknown field."""

import re
import reprlib
from collections.abc import Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import inspect

from deniable.config.section import Section, known_fields, members, metas_of, sections_in


def words_of(kind: Any) -> str:
    """Return the allowed values in words, such as `an integer in [1, 1000]`.

    A description in the type's Meta goes before what its constraints say.
    """
    return " or ".join(_words(member) for member in members(kind) if member is not NoneType)


def _words(kind: Any) -> str:
    described = [meta.description for meta in metas_of(kind) if meta.description]
    if described:
        return str(described[0])
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    info = inspect.type_info(kind)
    return _of_type(info.type if isinstance(info, inspect.Metadata) else info)


def _of_type(info: inspect.Type) -> str:
    match info:
        case inspect.IntType():
            return _number(
                "an integer" if info.multiple_of is None else f"a multiple of {info.multiple_of}", info
            )
        case inspect.FloatType():
            return _number("a number", info)
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType():
            return "a list of text"
        case inspect.DictType():
            return "a mapping of text to text"
        case inspect.StructType(cls=section):
            return f"a mapping of fields: {', '.join(known_fields(section))}"
    return "text"


def _number(noun: str, info: Any) -> str:
    """Return the noun with the range of an IntType or a FloatType."""
    if info.le is None and info.lt is None:
        if info.gt is not None:
            return f"{noun} in ({info.gt}, inf)"
        return noun if info.ge is None else f"{noun} of at least {info.ge}"
    lower = f"[{info.ge}" if info.gt is None else f"({info.gt}"
    upper = f"{info.le}]" if info.lt is None else f"{info.lt})"
    return f"{noun} in {lower}, {upper}"


def refusal(kind: Any, value: object, remedy: str = "", *, is_shown: bool = True) -> str:
    """Say what a value must be.

    Parameters
    ----------
    kind : its type.
    value : that is not of this type.
    remedy : what to say last, after that of the type.
    is_shown : whether to show the value.
    """
    choices = [choice for each in members(kind) if get_origin(each) is Literal for choice in get_args(each)]
    near = get_close_matches(str(value), choices, 1)
    got = f", got {'nothing' if value is None else reprlib.repr(value)}" if is_shown else ""
    guess = f"; did you mean {near[0]}?" if near else ""
    return f"must be {words_of(kind)}{got}{guess}{_ending(kind, remedy)}"


def missing_field(name: str, kind: Any, remedy: str = "") -> str:
    """Say what a missing field must be."""
    return f"field `{name}` is missing; it must be {words_of(kind)}{_ending(kind, remedy)}"


def unknown_field(
    name: str,
    section: type[Section],
    known: Sequence[str],
    others: Sequence[type[Section]],
    file: type[Section],
) -> tuple[str, str | None]:
    """Say that a name is no field, and where it belongs; return the field that it probably means, too.

    Of the name only the letters that it begins with are shown: a password may be in the wrong place.

    Parameters
    ----------
    name : in the file.
    section : that has no such field.
    known : names of its fields.
    others : what could be in its place, with another tag.
    file : the whole file's.
    """
    letters = re.split(r"\W", name, maxsplit=1)[0]
    said = f"unknown field `{letters if letters == name else f'{letters}…'}`"
    nested = (
        (field.name, each) for field in msgspec.structs.fields(section) for each in sections_in(field.type)
    )
    home = next((field for field, each in nested if name in each.__struct_fields__), None)
    tags = [str(other.__struct_config__.tag) for other in others if name in other.__struct_fields__]
    near = next(iter(get_close_matches(letters, known, 1)), None)
    listed = f" Known fields: {', '.join(known)}"
    if advice := section.not_fields.get(name):
        return f"{said}; {advice}.{listed}", None
    if name in file.__struct_fields__:
        return f"{said}; it belongs at the top level of the file", None
    if tags:
        return f"{said}; it belongs to {section.__struct_config__.tag_field} {', '.join(tags)}.{listed}", None
    if home is not None:
        return f"{said}; it belongs in the mapping `{home}`", None
    return f"{said}{f'; did you mean `{near}`?' if near else '.'}{listed}", near


def _ending(kind: Any, remedy: str) -> str:
    """Return the remedies: of the type, of its sections, and of the section around it."""
    of_type = ((meta.extra or {}).get("remedy", "") for each in members(kind) for meta in metas_of(each))
    ends = dict.fromkeys((*of_type, *(section.remedy for section in sections_in(kind)), remedy))
    return "".join(f"; {each}" for each in ends if each)
