"""A separate network for a run, in which packets can be dropped. Linux only, as root."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NETWORK_NAMESPACE = 0x40000000  # CLONE_NEWNET
HERE = "/proc/thread-self/ns/net"

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own() -> Iterator[None]:
    """Move this thread and its children into a network with only a loopback; OSError if not root."""
    with open(HERE, "rb") as home:
        _check(_libc.unshare(NETWORK_NAMESPACE))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(_libc.setns(home.fileno(), NETWORK_NAMESPACE))


@contextmanager
def dropped() -> Iterator[None]:
    """Drop all packets within the block: connections stay open, and nothing arrives."""
    subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "0"], check=True)
    try:
        yield
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)


def _check(status: int) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, f"a network of its own: {os.strerror(error)}; the run needs Linux and root")
