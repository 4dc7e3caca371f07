"""Check the one value of a call that records an event, and its client and time, in less than a microsecond.

As in `validation`, only types are checked, missing values are unknown ones, and no message contains a value,
a client or a time.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.responders.pair import text_pair
from deniable.producers.responders.validation import MISSING_TEXT, is_missing, is_number, nearest_float, whole


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
    """Return the rule for values of a collection: text, an integer, a number, a pair or a set of text."""
    what = f"a value of {collection.name}"
    mechanism = collection.mechanism
    if isinstance(mechanism, HotRappor) and mechanism.hot > 1:
        return ValueRule(_Unchecked, lambda value: _text_set(what, value))
    if collection.fields:
        return ValueRule(_Unchecked, lambda value: text_pair(collection, value))
    if isinstance(mechanism, SquareWave):
        return ValueRule(float, lambda value: number(what, value))
    if isinstance(mechanism, KRR | LongitudinalKRR) and not collection.values:
        return ValueRule(int, lambda value: _integer(what, value))
    return ValueRule(str, lambda value: _value_text(what, value))


def text(what: str, value: object) -> str:
    """Return a text as one of type `str` itself; TypeError if it is none."""
    if not isinstance(value, str):
        raise TypeError(
            f"{what} must be text, got {type(value).__name__}; quote or convert numbers: '9', str(9)"
        )
    return str.__str__(value)


def _value_text(what: str, value: object) -> str:
    return MISSING_TEXT if is_missing(value) else text(what, value)


def _integer(what: str, value: object) -> int:
    if not (is_number(value) or is_missing(value)):
        raise TypeError(f"{what} must be an integer, got {type(value).__name__}; convert it: int('9')")
    return whole(value)


def number(what: str, value: object) -> float:
    """Return a number as one of type `float` itself, infinite beyond its range, NaN if it is missing.

    Raises
    ------
    TypeError if it is no number.
    """
    if not (is_number(value) or is_missing(value)):
        raise TypeError(f"{what} must be a number, got {type(value).__name__}; convert it: float('9')")
    return nearest_float(value)


def _text_set(what: str, value: object) -> tuple[str, ...]:
    if is_missing(value):
        return (MISSING_TEXT,)
    if not isinstance(value, AbstractSet | list | tuple):
        raise TypeError(f"{what} must be a set, list or tuple of text, got {type(value).__name__}")
    return tuple(_value_text(f"each item of {what}", item) for item in tuple(value))


def unix_seconds(at: object) -> float:
    """Return a time as a float; TypeError if it is no number."""
    if not isinstance(at, float | int | np.integer | np.floating) or isinstance(at, bool):
        raise TypeError(f"at must be unix seconds, got {type(at).__name__}")
    try:
        return float(at)
    except OverflowError:
        return float("inf")
