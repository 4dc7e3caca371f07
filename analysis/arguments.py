"""Checks of the types that callers give: a wrong one is named before it fails somewhere inside."""

import reprlib
from collections.abc import Iterable
from numbers import Real
from typing import Any

from deniable.analysis.errors import WrongArgumentError


def check_type(name: str, given: Any, kinds: type | tuple[type, ...], allowed: str) -> None:
    """Raise WrongArgumentError if an argument is not of the types; True and False are no numbers.

    Parameters
    ----------
    name : of the argument.
    given : its value.
    kinds : the types it may have.
    allowed : what it must be, for the message.
    """
    if isinstance(given, bool) or not isinstance(given, kinds):
        raise WrongArgumentError(f"{name} must be {allowed}, got {in_one_line(given)}")


def texts_of(name: str, given: Any, allowed: str) -> list[str]:
    """Return the texts of an iterable that is no text: a list, set, Series, array or generator.

    Parameters
    ----------
    name : of the argument.
    given : its value; an iterator is read once.
    allowed : what it must be, for the message.

    Raises
    ------
    WrongArgumentError if it is of another type, or holds what is no text.
    """
    return [str(each) for each in _listed(name, given, str, allowed)]


def numbers_of(name: str, given: Any, allowed: str) -> list[float]:
    """Return the numbers of an iterable; parameters and errors as of `texts_of`."""
    return [float(each) for each in _listed(name, given, Real, allowed)]


def _listed(name: str, given: Any, kind: type, allowed: str) -> list[Any]:
    if isinstance(given, str | bytes | bytearray | dict) or not isinstance(given, Iterable):
        shown = "a text" if isinstance(given, str) else in_one_line(given)
        raise WrongArgumentError(f"{name} must be {allowed}, got {shown}")
    try:
        found = list(given)
    except TypeError as error:  # an array without dimensions
        raise WrongArgumentError(f"{name} must be {allowed}, got {in_one_line(given)}") from error
    for each in found:
        check_type(name, each, kind, allowed)
    return found


def in_one_line(given: Any) -> str:
    """Return a short repr: those of tables have many lines."""
    return " ".join(reprlib.repr(given).split())


def check_name(collection: Any) -> None:
    """Raise WrongArgumentError if the argument `collection` is not text."""
    check_type("collection", collection, str, "the name of a collection, such as 'plan'")
