"""Roll-ups with one thread of OpenBLAS, so that figures do not depend on how many cores there are.

Rule: sums of several threads are added in another order, which changes last digits. The commands run with one
thread; a notebook has as many as cores, and its figures are the commands' only if it uses one here, too.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import NamedTuple

# Modules of numpy and scipy that each link the OpenBLAS of their package, and how its functions are called.
_LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
_PREFIXES, _SUFFIXES = ("scipy_", ""), ("64_", "")


class _Threads(NamedTuple):
    """The number of threads of one OpenBLAS of the process."""

    get: Callable[[], int]
    set: Callable[[int], object]


class _Limit:
    """How many calls want one thread, and what the last one to end restores."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls = 0
        self.before: list[tuple[_Threads, int]] = []


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let OpenBLAS use one thread until the last of all such calls ends, then as many as before.

    The number is that of the process, so what other threads calculate meanwhile uses one, too. Other
    libraries (MKL, Accelerate), and an OpenBLAS whose functions are not found, stay as they are.
    """
    with _limit.lock:
        _limit.calls += 1
        if _limit.calls == 1:
            _limit.before = [(each, each.get()) for each in _libraries()]
            _set([(each, 1) for each, _ in _limit.before])
    try:
        yield
    finally:
        with _limit.lock:
            _limit.calls -= 1
            if _limit.calls == 0:
                _set(_limit.before)


def _set(numbers: list[tuple[_Threads, int]]) -> None:
    for each, number in numbers:
        if each.get() != number:
            each.set(number)


@cache
def _libraries() -> list[_Threads]:
    # A symbol is looked up in a module and in the libraries that it links, wherever these are installed.
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _LINKED]
    found = [_threads_of(ctypes.CDLL(file)) for file in files if file]
    return [each for each in found if each is not None]


def _threads_of(library: ctypes.CDLL) -> _Threads | None:
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            put = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
            if get is not None and put is not None:
                return _Threads(get, put)
    return None
