"""Partitions take turns; the fetcher is one that gives what it has in its own order, up to a limit."""

from aggregator.turns import HANDED_RECORDS, Turns


def hand_over(waiting: dict[str, int], turns: Turns) -> dict[str, range]:
    """As aiokafka does: the first source whole, then the next, until the limit."""
    asked, left, handed = turns.whose(waiting), HANDED_RECORDS, {}
    for source in [each for each in waiting if each in asked]:
        taken = min(left, waiting[source])
        waiting[source] -= taken
        left -= taken
        if taken:
            handed[source] = range(taken)
    turns.note(handed)
    return handed


def test_a_long_backlog_lets_the_others_come_next() -> None:
    waiting, turns = {"a": 10 * HANDED_RECORDS, "b": HANDED_RECORDS, "c": 3}, Turns()
    orders = [list(hand_over(waiting, turns)) for _ in range(4)]
    assert orders == [["a"], ["b"], ["c"], ["a"]]


def test_long_backlogs_shrink_side_by_side() -> None:
    waiting, turns = dict.fromkeys("abcd", 10 * HANDED_RECORDS), Turns()
    while any(waiting.values()):
        assert max(waiting.values()) - min(waiting.values()) <= HANDED_RECORDS
        assert sum(map(len, hand_over(waiting, turns).values())) == HANDED_RECORDS


def test_without_a_backlog_all_are_asked_at_once() -> None:
    turns = Turns()
    turns.note({"a": range(HANDED_RECORDS)})
    assert turns.whose({"a": 1, "b": 1}) == {"b"}
    turns.note({"b": range(5)})
    assert turns.whose({"a": 1, "b": 1}) == {"a", "b"}


def test_a_source_that_is_alone_never_waits() -> None:
    turns = Turns()
    turns.note({"a": range(HANDED_RECORDS)})
    assert turns.whose({"a": 1}) == {"a"}
