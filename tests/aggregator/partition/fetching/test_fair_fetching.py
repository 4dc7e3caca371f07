"""Partitions take turns; the fake fetcher returns records in its own order, up to a limit."""

import asyncio

from deniable.aggregator.partition.fetching.fair_fetching import HANDED_RUNS, FairFetching


class Fetcher:
    """Like aiokafka: returns all records of the first source that has any, then those of the next."""

    def __init__(self, **waiting: int) -> None:
        self.waiting = waiting
        self.turns: FairFetching[str] = FairFetching()
        self.waits: list[float] = []

    async def fetch(self, sources: set[str], seconds: float) -> dict[str, range]:
        self.waits.append(seconds)
        left, handed = HANDED_RUNS, {}
        for source in self.waiting:
            taken = min(left, self.waiting[source]) if source in sources else 0
            self.waiting[source] -= taken
            left -= taken
            if taken:
                handed[source] = range(taken)
        return handed

    def hand_over(self) -> str:
        """Partitions of the next records."""
        return "".join(asyncio.run(self.turns.hand_over(set(self.waiting), self.fetch, 1.0)))


def test_others_come_next_after_a_long_backlog() -> None:
    fetcher = Fetcher(a=10 * HANDED_RUNS, b=HANDED_RUNS, c=3)
    assert [fetcher.hand_over() for _ in range(4)] == ["a", "b", "c", "a"]


def test_idle_partitions_take_no_turns() -> None:
    fetcher = Fetcher(a=9 * HANDED_RUNS, b=9 * HANDED_RUNS, c=0, d=0)
    assert "".join(fetcher.hand_over() for _ in range(8)) == "abababab"


def test_long_backlogs_shrink_evenly() -> None:
    fetcher = Fetcher(**dict.fromkeys("abcd", 10 * HANDED_RUNS))
    while any(fetcher.waiting.values()):
        assert max(fetcher.waiting.values()) - min(fetcher.waiting.values()) <= HANDED_RUNS
        assert len(fetcher.hand_over()) == 1


def test_without_backlog_one_fetch_asks_all() -> None:
    fetcher = Fetcher(a=1, b=2)
    assert [fetcher.hand_over() for _ in range(2)] == ["ab", ""]
    assert fetcher.waits == [1.0, 1.0]


def test_single_partition_is_asked_once() -> None:
    fetcher = Fetcher(a=3 * HANDED_RUNS)
    assert [fetcher.hand_over() for _ in range(4)] == ["a", "a", "a", ""]
    assert fetcher.waits == [1.0] * 4
