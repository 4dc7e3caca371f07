"""Clients of a web server that open pages in several threads, and count what was answered."""

import threading
import time
from http.client import HTTPConnection, HTTPException
from itertools import count

from tests.support.processes import wait_until

PAGES = ("home", "search", "settings", "help")
SECONDS = 120.0


class Visitors:
    """Threads that open pages, one connection a request and each as another user, until the server is gone.

    Parameters
    ----------
    port : of the server on loopback.
    threads : at least 1.

    Attributes
    ----------
    answered : times of requests that were answered 200, by the clock of `time.monotonic`.
    broken : how many were sent but not answered: nobody knows whether the server recorded them.
    others : statuses other than 200.
    """

    def __init__(self, port: int, threads: int = 6) -> None:
        self.answered: list[float] = []
        self.broken = 0
        self.others: list[int] = []
        self._port = port
        self._users = count()
        self._lock = threading.Lock()
        self._is_over = False
        self._threads = [threading.Thread(target=self._visit) for _ in range(threads)]

    def __enter__(self) -> "Visitors":
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more requests, and wait for the answers."""
        self._is_over = True
        for each in self._threads:
            each.join(SECONDS)

    def wait(self, requests: int) -> None:
        """Wait until so many more were answered."""
        wanted = len(self.answered) + requests
        assert wait_until(lambda: len(self.answered) >= wanted, SECONDS), (len(self.answered), self.broken)

    def answered_between(self, begin: float, end: float) -> int:
        """Return how many were answered in an interval, by the clock of `time.monotonic`."""
        return sum(begin <= each <= end for each in self.answered)

    def _visit(self) -> None:
        while not self._is_over:
            user = next(self._users)
            connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
            try:
                connection.connect()
            except OSError:  # not sent
                time.sleep(0.01)
                continue
            try:
                connection.request("GET", f"/open/{PAGES[user % len(PAGES)]}?user=user-{user}")
                status = connection.getresponse().status
            except (OSError, HTTPException):
                with self._lock:
                    self.broken += 1
                continue
            finally:
                connection.close()
            if status == 200:
                self.answered.append(time.monotonic())
            else:
                self.others.append(status)
