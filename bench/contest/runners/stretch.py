"""How many packs a reader took in how long, from the first that it has to the last. For any environment."""

import json
import sys
import time


class Stretch:
    """Packs that were read; what came before the first of them, such as joining a group, is not timed."""

    def __init__(self) -> None:
        self.packs = 0
        self._first = 0
        self._began = self._ended = (0.0, 0.0)

    def add(self, packs: int) -> None:
        """So many more are done now."""
        if not packs:
            return
        now = (time.monotonic(), time.process_time())
        if not self.packs:
            self._first, self._began = packs, now
        self.packs += packs
        self._ended = now

    def tell(self, **more: object) -> None:
        """Write one line of JSON: packs after the first ones, seconds, and processor time of all threads."""
        (began, cpu_before), (ended, cpu_after) = self._began, self._ended
        told = {
            "packs": self.packs - self._first,
            "seconds": ended - began,
            "cpu_seconds": cpu_after - cpu_before,
            **more,
        }
        sys.stdout.write(json.dumps(told) + "\n")
