"""Packs read by a reader and the time it took. For any environment."""

import json
import sys
import time

MEASURED_SHARE = 0.9


class Stretch:
    """Packs read, from the first of a log to nine tenths of it.

    Time before, such as for joining a group, is excluded, and so is the end of the log, where a fetch may
    wait for exhausted partitions.
    """

    def __init__(self, packs: int) -> None:
        self.packs = 0
        self._enough = MEASURED_SHARE * packs
        self._first = self._last = (0, 0.0, 0.0)

    def add(self, packs: int = 1) -> None:
        """Count this many more packs."""
        if not packs:
            return
        self.packs += packs
        if self._last[0] < self._enough:
            self._last = (self.packs, time.monotonic(), time.process_time())
            if not self._first[0]:
                self._first = self._last

    def print(self, **more: object) -> None:
        """Write one line of JSON: packs after the first ones, seconds, and processor time of all threads."""
        differences = [last - first for first, last in zip(self._first, self._last, strict=True)]
        shown = dict(zip(("packs", "seconds", "cpu_seconds"), differences, strict=True))
        sys.stdout.write(json.dumps({**shown, **more}) + "\n")
        sys.stdout.flush()
