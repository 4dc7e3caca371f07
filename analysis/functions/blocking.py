"""Reads a topic for a caller that may be in a notebook, whose event loop runs already."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration

T = TypeVar("T")


def read_topic(loaded: Configuration, topic: str, read: Callable[[], Coroutine[None, None, T]]) -> T:
    """Check that a topic can be read, and run the coroutine that reads it to its end; see `run`.

    Raises
    ------
    TopicSetupError, UnreachableError, and errors of the coroutine.
    """

    def work() -> T:
        topic_checks.require_readable(loaded.cluster, loaded.topics, topic)
        return asyncio.run(read())

    return _apart(work)


def run(read: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run a coroutine, in a thread of its own if this one has a running event loop."""
    return _apart(lambda: asyncio.run(read()))


def _apart(work: Callable[[], T]) -> T:
    if not _is_in_a_loop():
        return work()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="deniable-read") as thread:
        return thread.submit(work).result()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
