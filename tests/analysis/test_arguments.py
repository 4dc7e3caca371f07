"""Lists of texts in the forms that Python programs have them in."""

from typing import Any

import numpy as np
import pytest

from analysis.arguments import texts_of
from analysis.errors import WrongArgumentError

ALLOWED = "a list of distinct strings, at least one"


@pytest.mark.parametrize(
    "given",
    [
        ["a", "b"],
        ("a", "b"),
        np.array(["a", "b"]),
        np.array(["a", "b"], object),
        iter("ab"),
        {"a": 1, "b": 2}.keys(),
    ],
)
def test_any_iterable_of_texts_is_a_list_of_them(given: Any) -> None:
    found = texts_of("candidates", given, ALLOWED)
    assert found == ["a", "b"]
    assert {type(each) for each in found} == {str}


def test_columns_and_sets_of_texts_are_taken() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra analysis is not installed")
    assert texts_of("candidates", pandas.Series(["a", "b"]), ALLOWED) == ["a", "b"]
    assert sorted(texts_of("candidates", {"a", "b"}, ALLOWED)) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("JFK", "a text"),
        (b"JFK", "b'JFK'"),
        (5, "5"),
        (None, "None"),
        ({"a": 1}, "{'a': 1}"),
        ([1], "1"),
        (np.array(["a", None], object), "None"),
        (np.array("a"), "array('a', dtype='<U1')"),
        (np.zeros((2, 2)), "array([0., 0.])"),
    ],
)
def test_what_is_no_list_of_texts_is_refused_in_one_line(given: Any, shown: str) -> None:
    with pytest.raises(WrongArgumentError) as raised:
        texts_of("candidates", given, ALLOWED)
    assert str(raised.value) == f"candidates must be {ALLOWED}, got {shown}"
