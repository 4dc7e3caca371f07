"""Whole numbers are digits; other text is repeated in messages only if it is a number."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.offline.integers import parse_whole


@given(st.integers(0, 10**20 - 1), st.sampled_from(["", " ", "\t", "\r"]))
def test_number_roundtrips(number, space):
    assert parse_whole(f"{space}{number}{space}", 0, 10**20 - 1) == number
    assert parse_whole(f"{number:0>20}", number, number) == number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "nothing"),
        ("  ", "nothing"),
        ("apple", "text"),
        ("1 2", "text"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        (" nan ", "nan"),
        ("1e3", "1e3"),
        ("٣", "٣"),
        ("100", "100"),
        ("9" * 5000, "9" * 20 + "..."),
    ],
)
def test_anything_else_is_refused(text, shown):
    message = f"must be a whole number in [1, 99], got {shown}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_whole(text, 1, 99)
