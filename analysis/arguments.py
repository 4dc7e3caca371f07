"""Checks of the types that callers give: a wrong one is named before it fails somewhere inside."""

import reprlib
from typing import Any

from analysis.errors import AnalysisError


def check_type(name: str, given: Any, kinds: type | tuple[type, ...], allowed: str) -> None:
    """Raise AnalysisError if an argument is not of the types; True and False are no numbers.

    Parameters
    ----------
    name : of the argument.
    given : its value.
    kinds : the types it may have.
    allowed : what it must be, for the message.
    """
    if isinstance(given, bool) or not isinstance(given, kinds):
        raise AnalysisError(f"{name} must be {allowed}, got {reprlib.repr(given)}")


def check_name(collection: Any) -> None:
    """Raise AnalysisError if the argument `collection` is not text."""
    check_type("collection", collection, str, "the name of a collection, such as 'plan'")
