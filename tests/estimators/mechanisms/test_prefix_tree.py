"""The prefix tree: its parameters, what a client of a level reports, and what it costs."""

import hmac
from functools import partial

import numpy as np
import pytest

from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, utf_8
from tests.support.messages import PinMessages

TREE = PrefixTree.from_epsilon((2, 4, 5), 2.0, 160)


def test_each_level_is_local_hashing_at_the_whole_epsilon():
    assert TREE.oracle == LocalHash.from_epsilon(2.0, 160)
    assert TREE.epsilon == TREE.oracle.epsilon <= 2.0
    assert (TREE.cohorts, TREE.width) == (3, TREE.oracle.width)


def test_parameters_name_all_that_a_report_depends_on():
    own = {"kind": "prefix-tree", "lengths": "2 4 5"}
    assert TREE.parameters() == LocalHash.from_epsilon(2.0, 160).parameters() | own


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [("", ["", "", ""]), ("abc", ["ab", "abc", "abc"]), ("abcdefg", ["ab", "abcd", "abcde"])],
)
def test_a_client_reports_the_first_bytes_of_its_text(text, prefixes):
    assert [TREE.prefix(utf_8(text), level).decode() for level in range(3)] == prefixes


def test_letters_of_several_bytes_are_cut_by_bytes():
    assert TREE.prefix(utf_8("naïve"), 0) == b"na"
    assert TREE.prefix(utf_8("žena"), 1) == b"\xc5\xbeen"
    assert utf_8("a\udc80") == b"a?"


def test_words_are_those_of_the_level_and_the_prefix():
    """Computed again by HMAC: the level is the first byte, so a text collides otherwise on each level."""
    functions = HashFunctions(TREE.oracle, 7)
    key = hmac.digest((7).to_bytes(8, "little"), b"deniable local-hash values", "sha256")
    for level in range(3):
        digest = hmac.digest(key, bytes([level]) + b"ab", "sha256")
        assert TREE.words([b"ab"], level, functions) == np.frombuffer(digest[:8], "<u8")


def test_messages(pin_messages: PinMessages) -> None:
    lengths = {
        "one length": (4,),
        "33 lengths": tuple(range(1, 34)),
        "equal lengths": (2, 2),
        "a length of 0": (0, 2),
        "a length of 256": (2, 256),
    }
    pin_messages({what: partial(PrefixTree.from_epsilon, wrong, 1.0) for what, wrong in lengths.items()})
