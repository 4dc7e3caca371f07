"""The random source of a producer: AES-CTR under a key from the operating system."""

import os
import time
from typing import Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.secrets import aes

BYTES_PER_KEY = 2**30
SECONDS_PER_KEY = 1.0


class Words(Protocol):
    """A source of independent, uniformly random 64-bit words; tests inject their own."""

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """uint64 of this shape."""


def below(words: NDArray[np.uint64], bound: int) -> NDArray[np.uint64]:
    """Multiply-shift: return the high 64 bits of words * bound, exactly; uint64, each in [0, bound).

    Every outcome has floor or ceil of 2**64 / bound words, so its probability is within 2**-64 of 1 / bound.
    `bound` is in [1, 2**32].
    """
    half, factor = np.uint64(32), np.uint64(bound)
    high, low = words >> half, words & np.uint64(0xFFFFFFFF)
    # words * bound = 2**32 * high * bound + low * bound, both products below 2**64, and high * bound + (low *
    # bound >> 32) < (high + 1) * bound <= 2**64: nothing overflows, and the floors nest.
    high *= factor
    low *= factor
    low >>= half
    high += low
    high >>= half
    return high


class _Key:
    """One key's keystream, for one draw at a time, and what ends it: a process, a time, a number of bytes."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.end = time.monotonic() + SECONDS_PER_KEY
        self.left = BYTES_PER_KEY
        self.encryptor = aes.counter(os.urandom(aes.KEY_BYTES))


class Keystream:
    """AES-128-CTR keystreams, re-keyed in another process, after SECONDS_PER_KEY and after BYTES_PER_KEY.

    Safe for threads and signal handlers: simultaneous draws use different keys. A key comes from `os.urandom`
    in the call that needs it, so a failure raises there and every word is fresh. One key produces at most
    BYTES_PER_KEY, or one longer draw: 2**26 blocks, which differ from random ones only in that they never
    repeat, an advantage below 2**-76.

    Every draw compares process ids, since libraries fork without Python's hooks. Copies of a whole machine
    have the same ids: those that go on from one snapshot may repeat words for SECONDS_PER_KEY, and then
    depend on how their kernels renew `os.urandom`.
    """

    def __init__(self) -> None:
        self.forget()
        _live.add(self)

    def forget(self) -> None:
        """Drop all keys; the next draw creates another."""
        self._idle: list[_Key] = []

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Draw uniform words, uint64 of this shape."""
        words = np.zeros(shape, "<u8")
        stream = words.reshape(-1).view(np.uint8).data
        # `pop` is one step of the interpreter: no other thread or signal handler gets the same key until it
        # is returned. A key returned after a fork goes to the list that was dropped.
        idle = self._idle
        try:
            key = idle.pop()
        except IndexError:
            key = _Key()
        if key.left < stream.nbytes or key.end < time.monotonic():
            key = _Key()
        key.left -= stream.nbytes
        key.encryptor.update_into(stream, stream)
        # Looked at after the draw, so that a signal handler that forks during it is seen too. The words of
        # the other process's key XOR those of a fresh one are as good as fresh.
        while key.process != os.getpid():
            key = _Key()
            key.left -= stream.nbytes
            key.encryptor.update_into(stream, stream)
        idle.append(key)
        return words


_live: WeakSet[Keystream] = WeakSet()


def _forget_all() -> None:
    for keystream in list(_live):
        keystream.forget()


# For a child in a namespace of its own, which may have its parent's process id. Errors in this hook would be
# swallowed, so it only drops keys and never creates one.
os.register_at_fork(after_in_child=_forget_all)
