"""Lists of texts in the forms that Python programs have them in."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from deniable.analysis.arguments import texts_of
from tests.support.messages import PinMessages

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


def test_messages(pin_messages: PinMessages) -> None:
    """Each in one line, which the form of an array has more of."""
    wrong: dict[str, Any] = {
        "a text": "JFK",
        "bytes": b"JFK",
        "a number": 5,
        "nothing": None,
        "a mapping": {"a": 1},
        "a list of numbers": [1],
        "an array with a gap": np.array(["a", None], object),
        "an array of no dimension": np.array("a"),
        "an array of two dimensions": np.zeros((2, 2)),
    }
    pin_messages({what: partial(texts_of, "candidates", given, ALLOWED) for what, given in wrong.items()})
