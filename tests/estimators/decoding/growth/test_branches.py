"""Branches of the tree: how prefixes are extended, which first, and how evidence changes their odds."""

import numpy as np
import pytest

from deniable.estimators.decoding.hashed.growth.alphabet import Alphabet, any_text
from deniable.estimators.decoding.hashed.growth.branches import Branches
from tests.support.messages import PinMessages

TWO = Alphabet.of_characters("ab")


def branches(probability: dict[bytes, float], whole: set[bytes] | None = None) -> Branches:
    is_whole = np.array([each in (whole or set()) for each in probability])
    return Branches(list(probability), is_whole, np.log(np.array(list(probability.values()))))


def test_root_grows_to_all_prefixes_and_shorter_texts():
    grown = Branches.root().grown(2, TWO, 100)
    assert grown.prefixes == [b"", b"a", b"b", b"aa", b"ab", b"ba", b"bb"]
    assert grown.is_whole.tolist() == [True] * 3 + [False] * 4
    assert np.exp(grown.log_probability) == pytest.approx(np.full(7, 1 / 7))


def test_likelier_prefixes_are_followed_first_and_whole_texts_stay():
    grown = branches({b"b": 0.2, b"a": 0.6, b"": 0.4}, {b""}).grown(2, TWO, 6)
    assert grown.prefixes == [b"a", b"aa", b"ab", b""]  # b has 3 more, above 6
    assert grown.is_whole.tolist() == [True, False, False, True]
    assert np.exp(grown.log_probability) == pytest.approx([0.2, 0.2, 0.2, 0.4])


def test_hardly_expected_prefixes_are_left_out():
    grown = branches({b"a": 0.9, b"b": 0.008}).grown(2, TWO, 100)
    assert grown.prefixes == [b"a", b"aa", b"ab"]


def test_evidence_changes_the_odds_by_the_ratio_of_normal_densities():
    before = branches({b"a": 0.01, b"b": 0.01})
    after = before.weighed(np.array([0.006, 0.0]), 0.001)
    for x, log_probability in zip((6.0, 0.0), after.log_probability, strict=True):
        odds = 0.01 * np.exp(-((x - 4) ** 2) / 2 + x**2 / 2)
        assert np.exp(log_probability) == pytest.approx(odds / (1 + odds))


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({"a step with too many prefixes": lambda: Branches.root().grown(3, any_text(), 1000)})
