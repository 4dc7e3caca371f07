"""Estimates in parts are complete once all parts of the same estimate have arrived, in any order."""

from itertools import permutations

from msgspec.structs import replace

from deniable.aggregator.records.estimate import EstimateRecord, Other
from deniable.aggregator.records.estimate_parts import MOST_UNFINISHED, Parts
from tests.support.aggregator.builders import estimate_of

WHOLE = estimate_of()  # three values


def part(number: int, parts: int = 3, **changed: object) -> EstimateRecord:
    """One of the three values of the estimate."""
    only = slice(number - 1, number)
    columns = ("values", "frequency", "count", "std_error", "low", "high", "significant")
    columns += ("low_all", "high_all", "unbiased")
    cut = {name: getattr(WHOLE, name)[only] for name in columns}
    other = WHOLE.other if number == parts else Other(1.0, 1.0)
    fields = cut | {"part": number, "parts": parts, "omitted": parts - number, "other": other}
    return replace(WHOLE, **(fields | changed))


def test_last_missing_part_completes_the_estimate() -> None:
    for order in permutations([part(1), part(2), part(3)]):
        found = Parts()
        assert [found.add(each) for each in order] == [None, None, WHOLE]


def test_estimate_of_one_part_is_complete_at_once() -> None:
    assert Parts().add(WHOLE) == WHOLE


def test_repeated_part_counts_once() -> None:
    found = Parts()
    assert [found.add(part(1)), found.add(part(1)), found.add(part(2))] == [None] * 3
    assert found.add(part(3)) == WHOLE


def test_parts_of_different_estimates_never_mix() -> None:
    found = Parts()
    strangers = [
        part(3, collection="place"),
        part(3, window_start=WHOLE.window_start + 10),
        part(3, revision=WHOLE.revision + 1),
        part(3, final=True),
    ]
    assert [found.add(each) for each in (part(1), part(2), *strangers)] == [None] * 6
    assert found.add(part(3)) == WHOLE


def test_unfinished_parts_are_dropped() -> None:
    found = Parts()
    for window in range(1000):
        found.add(part(2, window_start=window))
    assert len(found._found) == MOST_UNFINISHED
