"""Whose records are handed over next: a partition with a long backlog must not keep the others waiting. Pure.

aiokafka gives what it fetched first, whole; of small records a fetch holds so many that counting them takes
longer than the others should stand still.
"""

from collections.abc import Mapping, Sized
from typing import TypeVar

Source = TypeVar("Source")

HANDED_RECORDS = 2000  # at a time, all partitions together: well below a second of work


class Turns:
    """Who was served while there was more than could be handed over at once has to wait for the others."""

    def __init__(self) -> None:
        self._served: set[object] = set()

    def whose(self, sources: Mapping[Source, object]) -> set[Source]:
        """Those of the sources whose turn it is; all of them when each was served."""
        if self._served >= sources.keys():
            self._served.clear()
        return {source for source in sources if source not in self._served}

    def note(self, handed: Mapping[Source, Sized]) -> None:
        """Take note of what was handed over."""
        if sum(map(len, handed.values())) < HANDED_RECORDS:
            self._served.clear()
        else:
            self._served |= handed.keys()
