"""Partitions take turns; the fetcher is one that gives what it has in its own order, up to a limit."""

import asyncio

from aggregator.partition.fair_fetching import HANDED_RECORDS, FairFetching


class Fetcher:
    """As aiokafka: of the sources it is asked for the first one that has records, whole, then the next."""

    def __init__(self, **waiting: int) -> None:
        self.waiting = waiting
        self.turns: FairFetching[str] = FairFetching()
        self.waits: list[float] = []

    async def fetch(self, sources: set[str], seconds: float) -> dict[str, range]:
        self.waits.append(seconds)
        left, handed = HANDED_RECORDS, {}
        for source in self.waiting:
            taken = min(left, self.waiting[source]) if source in sources else 0
            self.waiting[source] -= taken
            left -= taken
            if taken:
                handed[source] = range(taken)
        return handed

    def hand_over(self) -> str:
        """Whose records come next."""
        return "".join(asyncio.run(self.turns.hand_over(set(self.waiting), self.fetch, 1.0)))


def test_a_long_backlog_lets_the_others_come_next() -> None:
    fetcher = Fetcher(a=10 * HANDED_RECORDS, b=HANDED_RECORDS, c=3)
    assert [fetcher.hand_over() for _ in range(4)] == ["a", "b", "c", "a"]


def test_idle_partitions_take_no_turn_from_the_others() -> None:
    fetcher = Fetcher(a=9 * HANDED_RECORDS, b=9 * HANDED_RECORDS, c=0, d=0)
    assert "".join(fetcher.hand_over() for _ in range(8)) == "abababab"


def test_long_backlogs_shrink_side_by_side() -> None:
    fetcher = Fetcher(**dict.fromkeys("abcd", 10 * HANDED_RECORDS))
    while any(fetcher.waiting.values()):
        assert max(fetcher.waiting.values()) - min(fetcher.waiting.values()) <= HANDED_RECORDS
        assert len(fetcher.hand_over()) == 1


def test_without_a_backlog_all_are_asked_at_once_and_waited_for() -> None:
    fetcher = Fetcher(a=3, b=4)
    assert [fetcher.hand_over() for _ in range(2)] == ["ab", ""]
    assert fetcher.waits == [1.0, 1.0]


def test_a_partition_that_is_alone_is_asked_once() -> None:
    fetcher = Fetcher(a=3 * HANDED_RECORDS)
    assert [fetcher.hand_over() for _ in range(4)] == ["a", "a", "a", ""]
    assert fetcher.waits == [1.0] * 4
