"""Candidates that reports of a prefix tree cannot tell apart are refused before anything is read."""

from deniable.analysis.functions.decoding import check_beginnings
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.support.messages import PinMessages

ALIKE = ["weather", "weathervane", "news"]


def test_candidates_with_the_same_beginning_are_refused_without_their_text(
    pin_messages: PinMessages,
) -> None:
    tree = Collection("search", PrefixTree.from_epsilon([2, 4, 7], 4.0), memoize=False)
    check_beginnings(tree, ["weather", "weathe", "news"])
    pin_messages({"two candidates alike": lambda: check_beginnings(tree, ALIKE)})


def test_whole_texts_are_hashed_elsewhere() -> None:
    check_beginnings(Collection("search", LocalHash.from_epsilon(4.0), memoize=False), ALIKE)
