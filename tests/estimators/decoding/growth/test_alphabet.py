"""The alphabet: every text is reached by its suffixes, and nothing but beginnings of texts."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.decoding.hashed.growth.alphabet import Alphabet, any_bytes, any_text
from tests.support.messages import PinMessages

NAMES = Alphabet.of_characters("abž€")


def reached(alphabet: Alphabet, text: bytes, step: int) -> bool:
    """Whether a text is found by steps of this many bytes."""
    prefix = b""
    while len(prefix) < len(text):
        suffix = text[len(prefix) : len(prefix) + step]
        if suffix not in alphabet.suffixes(alphabet.tail(prefix), step)[len(suffix)]:
            return False
        prefix += suffix
    return True


@pytest.mark.slow
@settings(max_examples=60)
@given(st.text(max_size=6), st.integers(1, 2))
def test_every_text_of_any_language_is_reached(text, step):
    assert reached(any_text(), text.encode("utf-8", "replace"), step)


@given(st.text("abž€", max_size=6), st.integers(1, 3))
def test_every_text_of_an_alphabet_is_reached(text, step):
    assert reached(NAMES, text.encode(), step)


@pytest.mark.parametrize("text", ["c", "aé", "ac", "€c"])
def test_texts_with_other_characters_are_not(text):
    assert not reached(NAMES, text.encode(), 2)


def test_only_well_formed_utf_8_is_followed():
    """Every open end of four bytes is the beginning of a text: it decodes, with what ends its last symbol."""
    alphabet = any_text()
    for tail in (b"\xe0", b"\xed", b"\xf0\x90", b"\xf4"):
        for suffix in alphabet.suffixes(tail, 1)[1]:
            rest = alphabet.tail(tail + suffix)
            ends = {b"": b"", b"\xe0" + suffix: b"\x80", b"\xed" + suffix: b"\x80"}
            (tail + suffix + ends.get(rest, b"\x80" * (4 - len(rest)))).decode()
    assert alphabet.suffixes(b"\xed", 1)[1][-1] == b"\x9f"  # no surrogates
    assert alphabet.suffixes(b"\xf4", 1)[1][-1] == b"\x8f"  # nothing beyond U+10FFFF


def test_a_text_ends_between_symbols_only():
    ended, one, two = NAMES.suffixes(b"", 2)
    assert ended == [b""]
    assert one == [b"a", b"b"]  # not in the middle of a letter
    assert {b"aa", b"a\xc5", b"\xc5\xbe", b"\xe2\x82"} <= set(two)


@pytest.mark.parametrize("alphabet", [NAMES, any_text(), any_bytes()])
@pytest.mark.parametrize("step", [1, 2])
def test_counts_are_those_of_suffixes(alphabet, step):
    tails = [each for each in (b"", b"\xc5", b"\xe2") if each in alphabet.following]
    for tail in tails:
        number = sum(map(len, alphabet.suffixes(tail, step)))
        assert alphabet.count(tail, step, number) == alphabet.count(tail, step, 1 << 40) == number
        assert alphabet.count(tail, step, number - 1) == number
    assert any_bytes().count(b"", 2, 1 << 20) == 1 + 256 + 256**2


def test_counting_stops_where_a_limit_is_exceeded():
    """A count of all 2,000 bytes would go through all unfinished symbols 2,000 times: minutes."""
    longest = 2_000
    assert any_text().count(b"", longest, 1000) == any_bytes().count(b"", longest, 1000) == 1001
    assert Alphabet.of_characters("a").count(b"", longest, 1000) == 1001
    assert Alphabet.of_characters("a").count(b"", longest, 3000) == longest + 1


def test_messages(pin_messages: PinMessages) -> None:
    """UTF-8 has no surrogates."""
    pin_messages(
        {
            "the first surrogate": partial(Alphabet.of_characters, "a\ud800"),
            "the last surrogate": partial(Alphabet.of_characters, "a\udfff"),
            "no character": partial(Alphabet.of_characters, ""),
        }
    )
