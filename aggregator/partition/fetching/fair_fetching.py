"""Fair fetching: a partition with a long backlog must not starve the others. Pure.

aiokafka returns its oldest fetch whole. A fetch of small records holds so many that counting them delays the
other partitions for too long.
"""

from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Generic, TypeVar

Source = TypeVar("Source")
Batch = TypeVar("Batch", bound=Sized)

HANDED_RUNS = 4  # per fetch, over all partitions: well below a second of work


class FairFetching(Generic[Source]):
    """After a full fetch, the partitions it served wait until the others have been served."""

    def __init__(self) -> None:
        self._served: set[Source] = set()

    async def hand_over(
        self,
        sources: set[Source],
        fetch: Callable[[set[Source], float], Awaitable[Mapping[Source, Batch]]],
        seconds: float,
    ) -> Mapping[Source, Batch]:
        """Fetch from the sources not served yet; if they have no records, from all.

        Parameters
        ----------
        sources : partitions to fetch.
        fetch : returns at most HANDED_RUNS runs of the given sources, within the given seconds.
        seconds : how long to wait for records, >= 0.
        """
        handed: Mapping[Source, Batch] = {}
        if self._served and (waiting := sources - self._served):
            handed = await fetch(waiting, 0)
        if not handed:
            self._served.clear()
            handed = await fetch(sources, seconds)
        if sum(map(len, handed.values())) < HANDED_RUNS:
            self._served.clear()
        else:
            self._served |= handed.keys()
        return handed
