"""Observe processes from outside, as an operator would."""

import time
from collections.abc import Callable
from pathlib import Path


def state_of(pid: int) -> str:
    """Return the state letter of a process; `Z` also for one that has ended. Source: proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def wait_until(happens: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Return True as soon as a condition holds, False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.02)
    return happens()


def descendants(pid: int) -> set[int]:
    """Return the ids of a process's children, and of theirs, now."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = {int(child) for each in threads for child in each.read_text().split()}
    return children.union(*map(descendants, children))
