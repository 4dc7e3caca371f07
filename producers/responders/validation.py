"""Validate the arguments of a report before anything is randomized.

Checks concern types and numbers of items; which value it is is never a reason to refuse one. A missing value,
such as None, NaN or pandas' NA in a column, is one that the collection does not know. No message contains a
value, a client or a time.
"""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.distinct_texts import numbered
from deniable.protocol.wire import MAX_WINDOW_START

#: One value: text, a number, or a set of text.
EventValue: TypeAlias = str | float | np.integer | np.floating | AbstractSet[str] | Sequence[str] | None
#: Unix seconds of one event; None for now.
EventTime: TypeAlias = float | np.integer | np.floating | None
#: One value, or several: text, numbers, or sets of text.
Values: TypeAlias = (
    str
    | float
    | np.integer
    | np.floating
    | AbstractSet[str]
    | Sequence[str]
    | Sequence[float]
    | Sequence[AbstractSet[str]]
    | Sequence[Sequence[str]]
    | NDArray[np.str_]
    | NDArray[np.integer]
    | NDArray[np.floating]
    | NDArray[np.object_]
)
#: The client of each value; None if each value is from a different client.
Clients: TypeAlias = str | Sequence[str] | NDArray[np.str_] | NDArray[np.object_] | None
#: Unix seconds of the events, one number or one for each; None for now.
Times: TypeAlias = (
    float | np.integer | np.floating | Sequence[float] | NDArray[np.integer] | NDArray[np.floating] | None
)

MISSING_TEXT = "\ufffd"  # stands for a missing text
MISSING_INTEGER = -1  # stands for a missing integer, and for a number that is none; no collection lists it


def is_missing(item: object) -> bool:
    """Whether this stands for a missing value: None, NaN, numpy's masked, pandas' NA and NaT."""
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(item != item)
    return type(item).__name__ in ("NAType", "NaTType", "MaskedConstant")


def texts(what: str, given: object) -> list[str]:
    """Return texts, given as one or a list, tuple or one-dimensional array of them; missing ones are unknown.

    Raises
    ------
    TypeError if it is or contains anything else; it names `what` and the type.
    """
    if isinstance(given, str):
        return [given]
    listed = [given] if is_missing(given) else _listed(what, given, "text", "text")
    return _as_texts(what, listed)


def different_texts(what: str, given: object) -> tuple[list[str], NDArray[np.int64]]:
    """Like `texts`, but return each distinct text once, and the index of each, int64 (n,)."""
    if isinstance(given, list | str):
        listed: list[Any] = [given] if isinstance(given, str) else list(given)
    else:
        listed = texts(what, given)
    try:
        different, number = numbered(listed)
        _check_texts(what, different)
    except TypeError:  # one is missing, or no text
        different, number = numbered(_as_texts(what, listed))
    return different, number


def text_sets(what: str, given: object) -> tuple[list[str], NDArray[np.int64]]:
    """Return values that are sets of texts, as all texts joined and the number of texts of each value.

    Parameters
    ----------
    what : name of the values.
    given : one set, or a list, tuple or one-dimensional array of sets, lists or tuples of text. A single text
        is refused: ["AA", "B6"] could be one value or two.

    Returns
    -------
    list of texts, and int64 (n,) that sums to its length.

    Raises
    ------
    TypeError if it is or holds anything else; it names `what` and the type.
    """
    listed: list[Any] = (
        [given]
        if isinstance(given, set | frozenset) or is_missing(given)
        else _listed(what, given, "a set of text", "such sets")
    )
    listed = [(MISSING_TEXT,) if is_missing(item) else item for item in listed]
    strange = [item for item in listed if not isinstance(item, set | frozenset | list | tuple)]
    if strange:
        got = _types(strange)
        raise TypeError(
            f"{what} must be sets, lists or tuples of text, got {got}; a value of two texts is [['AA', 'B6']]"
        )
    members = _as_texts(what, [member for item in listed for member in item])
    return members, np.fromiter(map(len, listed), np.int64, len(listed))


def _as_texts(what: str, items: list[Any]) -> list[str]:
    """Return the items with a text for each missing one; TypeError as `_check_texts` says."""
    with suppress(TypeError):
        _check_texts(what, items)
        return items
    items = [MISSING_TEXT if is_missing(item) else item for item in items]
    _check_texts(what, items)
    return items


def _check_texts(what: str, items: list[Any]) -> None:
    try:
        "".join(items)  # accepts only text, and is many times faster than a loop
    except TypeError:
        got = _types(item for item in items if not isinstance(item, str))
        raise TypeError(f"{what} must be text, got {got}; quote or convert numbers: '9', str(9)") from None


def integers(what: str, given: object) -> NDArray[np.integer]:
    """Return integers, given as one or a list, tuple or one-dimensional array of numbers, as an array (n,).

    A float is the integer that equals it: a column of integers is one of floats once a value is missing. One
    without such an integer, and a missing one, becomes MISSING_INTEGER. Integers beyond int64 become the
    nearest int64, unless given as an array.

    Raises
    ------
    TypeError if it is or contains anything else, bool included; it names `what` and the type.
    """
    if _is_array(given, "iu"):
        return given
    is_one = is_number(given) or is_missing(given)
    listed: list[Any] = [given] if is_one else _listed(what, given, "an integer", "integers")
    if not set(map(type, listed)) <= {int}:
        if not all(is_number(item) or is_missing(item) for item in listed):
            got = _types(item for item in listed if not (is_number(item) or is_missing(item)))
            raise TypeError(f"{what} must be integers, got {got}; convert them: int('9')")
        listed = [whole(item) for item in listed]
    try:
        return np.array(listed, np.int64)
    except OverflowError:
        return np.array([max(-(2**63), min(item, 2**63 - 1)) for item in listed], np.int64)


def whole(item: Any) -> int:
    """Return the integer that equals a number; MISSING_INTEGER if there is none, or the number is missing."""
    if isinstance(item, int | np.integer):
        return int(item)
    return int(item) if not is_missing(item) and item.is_integer() else MISSING_INTEGER


def numbers(what: str, given: object) -> NDArray[np.float64]:
    """Return numbers, given as one or a list, tuple or one-dimensional array of them, as float64 (n,).

    Numbers beyond the largest float become infinite, missing ones NaN.

    Raises
    ------
    TypeError if it is or contains anything else, bool included; it names `what` and the type.
    """
    if _is_array(given, "iuf"):
        with np.errstate(over="ignore"):  # a warning would depend on the value
            return given.astype(np.float64)
    is_one = is_number(given) or is_missing(given)
    listed: list[Any] = [given] if is_one else _listed(what, given, "a number", "numbers")
    with suppress(OverflowError):
        if set(map(type, listed)) <= {int, float}:
            return np.array(listed, np.float64)
    if not all(is_number(item) or is_missing(item) for item in listed):
        got = _types(item for item in listed if not (is_number(item) or is_missing(item)))
        raise TypeError(f"{what} must be numbers, got {got}; convert them: float('9')")
    return np.array([nearest_float(item) for item in listed], np.float64)


def nearest_float(item: Any) -> float:
    """Return a number as a float, infinite beyond the largest; NaN if it is missing."""
    if is_missing(item):
        return math.nan
    try:
        return float.__float__(item) if isinstance(item, float) else float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf


def _is_array(given: object, kinds: str) -> TypeGuard[NDArray[Any]]:
    """Whether this is a one-dimensional array of these kinds, with nothing masked."""
    if not isinstance(given, np.ndarray) or hasattr(given, "mask"):  # numpy.ma need not be loaded
        return False
    return given.ndim == 1 and given.dtype.kind in kinds


def _listed(what: str, given: object, one: str, several: str) -> list[Any]:
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return cast("list[Any]", given.tolist())
    if isinstance(given, list | tuple):
        return list(given)  # another thread may change the caller's list
    raise TypeError(
        f"{what} must be {one}, or a list, tuple or array of {several}, got {type(given).__name__}"
        f"{_as_list(given)}"
    )


def _as_list(given: object) -> str:
    """Say how an array of other dimensions, or what is like one, such as a pandas Series, becomes a list."""
    if not has_list(given):
        return ""
    dimensions = getattr(given, "ndim", 1)
    if dimensions > 1:
        return f" of {dimensions} dimensions; give one column of it: array[:, 0].tolist()"
    return "; give its .tolist()"


def has_list(given: object) -> bool:
    """Whether this is like an array, and can become a list."""
    return not isinstance(given, np.generic) and callable(getattr(given, "tolist", None))


def is_number(item: object) -> bool:
    """Whether this is an integer or a float, of Python or numpy; a bool is none."""
    return isinstance(item, float | int | np.integer | np.floating) and not isinstance(item, bool)


def _types(strange: Iterable[object]) -> str:
    return ", ".join(sorted({type(item).__name__ for item in strange}))


def clients_of(given: object, count: int) -> list[str] | None:
    """Return the client of each of `count` values, or None if every event is from a different client.

    Raises
    ------
    TypeError if a client is not text; ValueError if the numbers of clients and values differ, or if a client
    is empty: all unknown clients would be one client, with one budget.
    """
    if given is None:
        return None
    clients = [given] if isinstance(given, str) else _listed("clients", given, "text", "text")
    _check_texts("clients", clients)
    if len(clients) != count:
        values = "1 value" if count == 1 else f"{count} values"
        raise ValueError(f"clients must be one for each value, got {len(clients)} for {values}")
    if not all(clients):
        raise ValueError(f"clients must not be empty, got an empty one at index {clients.index('')}")
    return clients


def window_starts(at: object, count: int, window_seconds: int) -> NDArray[np.int64]:
    """Return the start of each event's window, unix seconds, int64 (count,).

    Parameters
    ----------
    at : time of all events, or of each: unix seconds in [0, MAX_WINDOW_START].
    count : number of events.
    window_seconds : length of a window, at least 1.

    Raises
    ------
    TypeError if `at` is not numbers; ValueError if one is NaN or out of range, or if it is neither one number
    nor `count` of them.
    """
    times = np.asarray(at)
    if times.dtype.kind not in "iuf":
        raise TypeError(f"at must be unix seconds, one number or an array of them, got {type(at).__name__}")
    if times.shape not in ((), (count,)):
        raise ValueError(f"at must be one number or one for each of {count} values, got shape {times.shape}")
    if not ((times >= 0) & (times <= MAX_WINDOW_START)).all():
        raise ValueError(f"at must be unix seconds in [0, {MAX_WINDOW_START}]")
    starts = (times // window_seconds).astype(np.int64) * window_seconds
    return np.broadcast_to(starts, (count,))
