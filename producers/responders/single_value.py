"""Check the one value of a call that records an event, and its client and time, in less than a microsecond.

As in `validation`, only types are checked, and no message contains a value, a client or a time.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

import numpy as np

from deniable.estimators.collection import Collection
from deniable.producers.responders.pair import text_pair
from deniable.protocol.notation import MISSING_TEXT, integer_of, is_missing, is_value, number_of, text_of
from deniable.protocol.times import CLOCKS, seconds_of_number


@dataclass(frozen=True)
class ValueRule:
    """What one value of a collection may be.

    Parameters
    ----------
    exact : type of values that need no further check.
    checked : returns a value of another type as one that nobody can change, or raises TypeError.
    """

    exact: type
    checked: Callable[[object], object]


class _Unchecked:
    """No value is of this type, so each is checked."""


def value_rule(collection: Collection) -> ValueRule:
    """Return the rule for values of a collection: a text, an integer, a number, a pair or a set of texts."""
    what = f"a value of {collection.name}"
    if collection.takes_several:
        return ValueRule(_Unchecked, lambda value: _text_set(what, value))
    if collection.fields:
        return ValueRule(_Unchecked, lambda value: text_pair(collection, value))
    if collection.number is not None:
        return ValueRule(float, partial(_checked, what, number_of))
    if collection.takes_integers:
        return ValueRule(int, partial(_checked, what, integer_of))
    return ValueRule(str, partial(_checked, what, text_of))


def _checked(what: str, read: Callable[[object], object], value: object) -> object:
    if not is_value(value):
        raise TypeError(f"{what} must be text, a number, True, False or None, got {type(value).__name__}")
    return read(value)


def _text_set(what: str, value: object) -> tuple[object, ...]:
    if is_missing(value):
        return (MISSING_TEXT,)
    if not isinstance(value, AbstractSet | list | tuple):
        raise TypeError(f"{what} must be a set, list or tuple, got {type(value).__name__}")
    return tuple(_checked(f"each item of {what}", text_of, item) for item in tuple(value))


def unix_seconds(at: object) -> float:
    """Return the unix seconds that a number means, infinite if it is no time; TypeError if it is none."""
    if not isinstance(at, float | int | np.integer | np.floating) or isinstance(at, bool):
        raise TypeError(f"at must be unix seconds, {CLOCKS}, got {type(at).__name__}")
    return seconds_of_number(at if isinstance(at, float | int) else at.item())
