"""Whole numbers are digits; other text is repeated in messages only if it is a number."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.deploy.offline.integers import parse_whole
from tests.support.messages import PinMessages


@given(st.integers(0, 10**20 - 1), st.sampled_from(["", " ", "\t", "\r"]))
def test_number_roundtrips(number, space):
    assert parse_whole(f"{space}{number}{space}", 0, 10**20 - 1) == number
    assert parse_whole(f"{number:0>20}", number, number) == number


def test_messages(pin_messages: PinMessages) -> None:
    """Only numbers are repeated."""
    texts = {
        "no character": "",
        "spaces": "  ",
        "a word": "apple",
        "two numbers": "1 2",
        "a negative number": "-1",
        "a fraction": "1.5",
        "NaN": " nan ",
        "a power of ten": "1e3",
        "an Arabic digit": "٣",
        "above the range": "100",
        "5000 digits": "9" * 5000,
    }
    pin_messages({what: partial(parse_whole, text, 1, 99) for what, text in texts.items()})
    with pytest.raises(ValueError, match="whole") as refused:
        parse_whole("apple", 1, 99)
    assert "apple" not in str(refused.value)
