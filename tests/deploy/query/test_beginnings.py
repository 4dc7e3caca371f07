"""Candidates that reports of a prefix tree cannot tell apart are refused before anything is read."""

import pytest

from analysis.errors import WrongArgumentError
from deploy.query.decoding.any_text import check_beginnings
from estimators.collection import Collection
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree

ALIKE = ["weather", "weathervane", "news"]


def test_candidates_with_the_same_beginning_are_refused_without_their_text() -> None:
    tree = Collection("search", PrefixTree.from_epsilon([2, 4, 7], 4.0), memoize=False)
    check_beginnings(tree, ["weather", "weathe", "news"])
    with pytest.raises(WrongArgumentError) as caught:
        check_beginnings(tree, ALIKE)
    assert str(caught.value) == (
        "candidates must differ in their first 7 bytes, all that reports of search have; "
        "candidate 2 is like candidate 1 there: leave one out"
    )


def test_whole_texts_are_hashed_elsewhere() -> None:
    check_beginnings(Collection("search", LocalHash.from_epsilon(4.0), memoize=False), ALIKE)
