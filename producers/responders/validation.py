"""Validate the arguments of a report before anything is randomized.

Checks concern types and numbers of items; which value it is is never a reason to refuse one. What a value
means is decided by `protocol.notation`. No message contains a value, a client or a time.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.distinct_texts import numbered
from deniable.protocol.notation import (
    MISSING_TEXT,
    integer_of,
    is_missing,
    is_number,
    is_value,
    number_of,
    text_of,
)
from deniable.protocol.times import CLOCKS, NUMBERS, SIMULATED, seconds_of_number
from deniable.protocol.wire import MAX_WINDOW_START

#: One value: text, a number, a truth value, or a set or pair of them.
EventValue: TypeAlias = (
    str | float | np.integer | np.floating | np.bool_ | AbstractSet[Any] | Sequence[Any] | None
)
#: Time of one event, a number as `protocol.times` reads it, mostly unix seconds; None for now.
EventTime: TypeAlias = float | np.integer | np.floating | None
#: One value, or several.
Values: TypeAlias = EventValue | NDArray[np.generic]
#: The client of each value, text or an integer; None if each value is from a different client.
Clients: TypeAlias = (
    str | int | Sequence[str | int] | NDArray[np.str_] | NDArray[np.integer] | NDArray[np.object_] | None
)
#: Times of the events, one number or one for each; None for now.
Times: TypeAlias = (
    float | np.integer | np.floating | Sequence[float] | NDArray[np.integer] | NDArray[np.floating] | None
)
ABSENT = cast("Clients", object())  # stands for an argument that was not given


def one_given(clients: Clients, client: Clients) -> Clients:
    """Return the one that is not ABSENT; TypeError unless it is one."""
    given = [each for each in (clients, client) if each is not ABSENT]
    if len(given) != 1:
        what = "both" if given else "neither"
        raise TypeError(
            f"report takes clients= or client=, got {what}; None: each value is from a different client"
        )
    return given[0]


def texts(what: str, given: object) -> list[str]:
    """Return the texts of one value, or of a list, tuple or one-dimensional array of them.

    Raises
    ------
    TypeError if it is or contains what is no value; it names `what` and the type.
    """
    return _as_texts(what, _values(what, given))


def different_texts(what: str, given: object) -> tuple[list[str], NDArray[np.int64]]:
    """Like `texts`, but return each distinct text once, and the index of each, int64 (n,)."""
    listed = _values(what, given)
    with suppress(TypeError):  # one is no text, or has no hash
        different, number = numbered(listed)
        "".join(different)
        return different, number
    return numbered(_as_texts(what, listed))


def text_sets(what: str, given: object) -> tuple[list[str], NDArray[np.int64]]:
    """Return values that are sets, as the texts of all joined and the number of texts of each value.

    Parameters
    ----------
    what : name of the values.
    given : one set, or a list, tuple or one-dimensional array of sets, lists or tuples. A single text
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
        else _listed(what, given, "a set of values", "such sets")
    )
    listed = [(MISSING_TEXT,) if is_missing(item) else item for item in listed]
    strange = [item for item in listed if not isinstance(item, set | frozenset | list | tuple)]
    if strange:
        got = _types(strange)
        raise TypeError(
            f"{what} must be sets, lists or tuples, got {got}; a value of two texts is [['AA', 'B6']]"
        )
    members = _as_texts(what, [member for item in listed for member in item])
    return members, np.fromiter(map(len, listed), np.int64, len(listed))


def _as_texts(what: str, items: list[Any]) -> list[str]:
    """Return the text of each item; TypeError as `_check` says."""
    with suppress(TypeError):
        "".join(items)  # accepts only text, and is many times faster than a loop
        return items
    _check(what, items)
    return [text_of(item) for item in items]


def _check(what: str, items: Iterable[object]) -> None:
    """Raise TypeError if an item is no value, with the types of those that are none."""
    if got := _types(item for item in items if not is_value(item)):
        raise TypeError(f"{what} must be text, numbers, True, False or None, got {got}")


def integers(what: str, given: object) -> NDArray[np.integer]:
    """Return the integers of one value, or of a list, tuple or one-dimensional array of them, as (n,).

    What is no integer becomes MISSING_INTEGER. Integers beyond int64 become the nearest int64, unless given
    as an array.

    Raises
    ------
    TypeError if it is or contains what is no value; it names `what` and the type.
    """
    if _is_array(given, "iu"):
        return given
    listed = _values(what, given)
    if not set(map(type, listed)) <= {int}:
        _check(what, listed)
        listed = [integer_of(item) for item in listed]
    try:
        return np.array(listed, np.int64)
    except OverflowError:
        return np.array([max(-(2**63), min(item, 2**63 - 1)) for item in listed], np.int64)


def numbers(what: str, given: object) -> NDArray[np.float64]:
    """Return the numbers of one value, or of a list, tuple or one-dimensional array of them, float64 (n,).

    Numbers beyond the largest float become infinite, what is none NaN.

    Raises
    ------
    TypeError if it is or contains what is no value; it names `what` and the type.
    """
    if _is_array(given, "iuf"):
        with np.errstate(over="ignore"):  # a warning would depend on the value
            return given.astype(np.float64)
    listed = _values(what, given)
    with suppress(OverflowError):
        if set(map(type, listed)) <= {int, float}:
            return np.array(listed, np.float64)
    _check(what, listed)
    return np.array([number_of(item) for item in listed], np.float64)


def _is_array(given: object, kinds: str) -> TypeGuard[NDArray[Any]]:
    """Whether this is a one-dimensional array of these kinds, with nothing masked."""
    if not isinstance(given, np.ndarray) or hasattr(given, "mask"):  # numpy.ma need not be loaded
        return False
    return given.ndim == 1 and given.dtype.kind in kinds


def _values(what: str, given: object) -> list[Any]:
    if is_value(given):
        return [given]
    return _listed(what, given, "text, a number, True, False or None", "these")


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


def _types(strange: Iterable[object]) -> str:
    return ", ".join(sorted({type(item).__name__ for item in strange}))


def clients_of(given: object, count: int) -> list[str] | None:
    """Return the client of each of `count` values, or None if every event is from a different client.

    Raises
    ------
    TypeError if a client is neither text nor an integer; ValueError if the numbers of clients and values
    differ, or if a client is empty: all unknown clients would be one client, with one budget.
    """
    if given is None:
        return None
    clients = [given] if is_value(given) else _listed("clients", given, "text or an integer", "these")
    clients = _as_clients(clients)
    if len(clients) != count:
        values = "1 value" if count == 1 else f"{count} values"
        raise ValueError(f"clients must be one for each value, got {len(clients)} for {values}")
    if not all(clients):
        raise ValueError(f"clients must not be empty, got an empty one at index {clients.index('')}")
    return clients


def _as_clients(clients: list[Any]) -> list[str]:
    with suppress(TypeError):
        "".join(clients)
        return clients
    return [client_text("clients", client) for client in clients]


def client_text(what: str, client: object) -> str:
    """Return the text of a client's id; TypeError if it is neither text nor an integer."""
    if not isinstance(client, str) and not (is_number(client) and number_of(client).is_integer()):
        raise TypeError(f"{what} must be text or an integer, got {type(client).__name__}")
    return text_of(client)


def unix_times(at: Times) -> Times:
    """Return times in unix seconds, each number as `protocol.times` reads it; other types as they are.

    Raises
    ------
    ValueError if a number is no time.
    """
    times = np.asarray(at)
    if times.dtype.kind not in "iuf":
        return at
    are_milliseconds = (times >= 1e12) & (times < 1e13)
    are_seconds = ((times >= 0) & (times < SIMULATED)) | ((times >= 1e8) & (times < 1e11))
    others = np.flatnonzero(~(are_milliseconds | are_seconds))
    if not (others.size or are_milliseconds.any()):
        return at
    found = np.where(are_milliseconds, times / 1000, times)
    for place in others.tolist():
        found.flat[place] = seconds_of_number(times.flat[place].item())
    if np.isinf(found).any():
        raise ValueError(f"at must be {NUMBERS}")
    return found


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
        raise TypeError(f"at must be unix seconds, one number or an array, {CLOCKS}, got {type(at).__name__}")
    if times.shape not in ((), (count,)):
        raise ValueError(f"at must be one number or one for each of {count} values, got shape {times.shape}")
    if not ((times >= 0) & (times <= MAX_WINDOW_START)).all():
        raise ValueError(f"at must be unix seconds in [0, {MAX_WINDOW_START}]")
    starts = (times // window_seconds).astype(np.int64) * window_seconds
    return np.broadcast_to(starts, (count,))
