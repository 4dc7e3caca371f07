"""Whose records are handed over next: a partition with a long backlog must not keep the others waiting. Pure.

aiokafka gives what it fetched first, whole; of small records a fetch holds so many that counting them takes
longer than the others should stand still.
"""

from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Generic, TypeVar

Source = TypeVar("Source")
Batch = TypeVar("Batch", bound=Sized)

HANDED_RECORDS = 2000  # at a time, all partitions together: well below a second of work


class FairFetching(Generic[Source]):
    """Who was served while there was more than could be handed over at once waits until the others were."""

    def __init__(self) -> None:
        self._served: set[Source] = set()

    async def hand_over(
        self,
        sources: set[Source],
        fetch: Callable[[set[Source], float], Awaitable[Mapping[Source, Batch]]],
        seconds: float,
    ) -> Mapping[Source, Batch]:
        """Fetch from those whose turn it is; if they have nothing, from all of them.

        Parameters
        ----------
        sources : from which to fetch.
        fetch : gives HANDED_RECORDS at most of the sources it is called with, within so many seconds.
        seconds : to wait where nothing is there.
        """
        handed: Mapping[Source, Batch] = {}
        if self._served and (waiting := sources - self._served):
            handed = await fetch(waiting, 0)
        if not handed:
            self._served.clear()
            handed = await fetch(sources, seconds)
        if sum(map(len, handed.values())) < HANDED_RECORDS:
            self._served.clear()
        else:
            self._served |= handed.keys()
        return handed
