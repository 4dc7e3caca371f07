"""Validate the arguments of a report before anything is randomized.

Checks concern types and numbers of items; the content of a text or integer is never a reason to refuse it. No
message contains a value, a client or a time.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from estimators.collection import Collection
from estimators.mechanisms.hashing.distinct_texts import numbered
from producers.wire import MAX_WINDOW_START

#: One value: text, a number, or a set of text.
EventValue: TypeAlias = str | float | np.integer | np.floating | AbstractSet[str] | Sequence[str]
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

_BEYOND = 2**1023  # any range ends below it, and a float holds it


def texts(what: str, given: object) -> list[str]:
    """Return texts, given as one or a list, tuple or one-dimensional array of them.

    Raises
    ------
    TypeError if it is or contains anything else; it names `what` and the type.
    """
    if isinstance(given, str):
        return [given]
    listed = _listed(what, given, "text", "text")
    _check_texts(what, listed)
    return listed


def different_texts(what: str, given: object) -> tuple[list[str], NDArray[np.int64]]:
    """Like `texts`, but return each distinct text once, and the index of each, int64 (n,)."""
    if isinstance(given, str):
        listed: list[Any] = [given]
    else:
        listed = given if isinstance(given, list) else _listed(what, given, "text", "text")  # read once
    try:
        different, number = numbered(listed)
    except TypeError:  # one has no hash, so it is not text
        _check_texts(what, listed)
        raise
    _check_texts(what, different)
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
    listed = (
        [given] if isinstance(given, set | frozenset) else _listed(what, given, "a set of text", "such sets")
    )
    strange = [item for item in listed if not isinstance(item, set | frozenset | list | tuple)]
    if strange:
        got = _types(strange)
        raise TypeError(
            f"{what} must be sets, lists or tuples of text, got {got}; a value of two texts is [['AA', 'B6']]"
        )
    members = [member for item in listed for member in item]
    _check_texts(what, members)
    return members, np.fromiter(map(len, listed), np.int64, len(listed))


def text_pairs(collection: Collection, given: object) -> tuple[list[str], list[str]]:
    """Return values that are pairs of texts, as the first texts and the second ones.

    Parameters
    ----------
    collection : a pair of fields.
    given : one tuple or list of two texts, or a list, tuple or one-dimensional array of such.

    Raises
    ------
    TypeError if it is or holds anything else, as `no_pair` says.
    """
    several = f", or [{example_pair(collection)}] for several"
    as_list = "; .tolist() makes such a list" if _has_list(given) else ""
    if _is_one_pair(given):
        listed: list[Any] = [given]
    elif isinstance(given, tuple | list) or (isinstance(given, np.ndarray) and given.ndim == 1):
        listed = list(given)
    else:
        raise no_pair(collection, given, several + as_list)
    for item in listed:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise no_pair(collection, item, several)
    firsts, seconds = [item[0] for item in listed], [item[1] for item in listed]
    try:
        "".join(firsts), "".join(seconds)
    except TypeError:
        raise no_pair(collection, next(pair for pair in listed if not _are_texts(pair)), several) from None
    return firsts, seconds


def text_pair(collection: Collection, value: object) -> tuple[str, str]:
    """Return one pair of texts as a tuple of type `str` itself; TypeError as `no_pair` says if it is none."""
    pair = tuple(value) if isinstance(value, tuple | list) else ()
    if len(pair) != 2 or not _are_texts(pair):
        raise no_pair(collection, value)
    return str.__str__(pair[0]), str.__str__(pair[1])


def no_pair(collection: Collection, given: object, several: str = "") -> TypeError:
    """Return the error of what is no pair of texts: both fields, the types given, and what would be one.

    Parameters
    ----------
    collection : a pair of fields.
    given : only its type is shown, or those of two items, or the number of other items.
    several : how to give several values, where that is possible.
    """
    kind = type(given).__name__
    if isinstance(given, tuple | list):
        kinds = [type(item).__name__ for item in given]
        kind += f" of {' and '.join(kinds)}" if len(kinds) == 2 else f" of {len(kinds)}"
    names = ", ".join(field.name for field in collection.fields)
    return TypeError(
        f"a value of {collection.name} must be a tuple or list of two texts, ({names}), got {kind}; "
        f"for example {example_pair(collection)}{several}"
    )


def example_pair(collection: Collection) -> tuple[str, ...]:
    """Return the first value that the collection file lists for each field, whatever is reported."""
    return tuple(field.values[0] for field in collection.fields)


def _is_one_pair(given: object) -> bool:
    """Whether it is meant as one pair: several contain no text themselves, but pairs."""
    if not isinstance(given, tuple | list) or any(isinstance(item, tuple | list) for item in given[:2]):
        return False
    return any(isinstance(item, str) for item in given[:2])


def _are_texts(items: Iterable[object]) -> bool:
    return all(isinstance(item, str) for item in items)


def _check_texts(what: str, items: list[Any]) -> None:
    try:
        "".join(items)  # accepts only text, and is many times faster than a loop
    except TypeError:
        got = _types(item for item in items if not isinstance(item, str))
        raise TypeError(f"{what} must be text, got {got}; quote or convert numbers: '9', str(9)") from None


def integers(what: str, given: object) -> NDArray[np.integer]:
    """Return integers, given as one or a list, tuple or one-dimensional array of them, as an array (n,).

    Integers beyond int64 become the nearest int64, unless given as an array.

    Raises
    ------
    TypeError if it is or contains anything else, bool and float included; it names `what` and the type.
    """
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu":
        return given
    listed: list[Any] = [given] if _is_integer(given) else _listed(what, given, "an integer", "integers")
    if not set(map(type, listed)) <= {int} and not all(map(_is_integer, listed)):
        got = _types(item for item in listed if not _is_integer(item))
        raise TypeError(f"{what} must be integers, got {got}; convert them: int('9')")
    try:
        return np.array(listed, np.int64)
    except OverflowError:
        return np.array([max(-(2**63), min(int(item), 2**63 - 1)) for item in listed], np.int64)


def numbers(what: str, given: object) -> NDArray[np.float64]:
    """Return numbers, given as one or a list, tuple or one-dimensional array of them, as float64 (n,).

    Integers beyond the largest float become infinite.

    Raises
    ------
    TypeError if it is or contains anything else, bool included; it names `what` and the type.
    """
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iuf":
        return given.astype(np.float64)
    listed: list[Any] = [given] if _is_number(given) else _listed(what, given, "a number", "numbers")
    if not set(map(type, listed)) <= {int, float} and not all(map(_is_number, listed)):
        got = _types(item for item in listed if not _is_number(item))
        raise TypeError(f"{what} must be numbers, got {got}; convert them: float('9')")
    try:
        return np.array(listed, np.float64)
    except OverflowError:
        return np.array([max(-_BEYOND, min(item, _BEYOND)) for item in listed], np.float64)


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
    if not _has_list(given):
        return ""
    dimensions = getattr(given, "ndim", 1)
    if dimensions > 1:
        return f" of {dimensions} dimensions; give one column of it: array[:, 0].tolist()"
    return "; give its .tolist()"


def _has_list(given: object) -> bool:
    return not isinstance(given, np.generic) and callable(getattr(given, "tolist", None))


def _is_number(item: object) -> bool:
    return isinstance(item, float | int | np.integer | np.floating) and not isinstance(item, bool)


def _is_integer(item: object) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


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
    clients = texts("clients", given)
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
