"""Where changes are not looked for: why, and which command finds them."""

from dataclasses import replace

import pytest

from deniable.aggregator.metrics.definitions import MOST_WATCHED
from deniable.aggregator.views.change_watch import Unwatched, is_watched, unwatched
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.square_wave import SquareWave

TREE = Collection("search", PrefixTree.from_epsilon((2, 3), 4.0), candidates=("ab",))


def krr(values: int) -> Collection:
    return Collection("many", KRR.from_epsilon(values, 2.0))


@pytest.mark.parametrize(
    ("collection", "expected"),
    [
        (krr(MOST_WATCHED), None),
        (krr(MOST_WATCHED + 1), Unwatched("values", "changes")),
        (krr(1 << 16), Unwatched("values", "compare")),
        (TREE, Unwatched("counters", "compare")),
        (replace(TREE, growth=GrowthRule(2, 0.05)), Unwatched("growth", "compare")),
        (replace(TREE, candidates=(), growth=GrowthRule(2, 0.05)), Unwatched("growth", "grow")),
        (Collection("hashed", LocalHash.from_epsilon(2.0, 40), candidates=("a",)), None),
        (replace(TREE, candidates=()), None),
        (Collection("number", SquareWave.from_epsilon(0.0, 1.0, 256, 1.0)), None),
    ],
    ids=[
        "few",
        "more",
        "many",
        "counters",
        "growing",
        "only-growing",
        "few-counters",
        "nothing-listed",
        "number",
    ],
)
def test_reason_and_command_fit_the_collection(collection: Collection, expected: Unwatched | None) -> None:
    """What is not watched has a reason; so has what is watched from its worker's start only."""
    assert unwatched(collection) == expected
    if expected is not None:
        assert is_watched(collection) == (expected.reason == "counters")
