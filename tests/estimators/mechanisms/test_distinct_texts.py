"""Texts are numbered by the distinct ones, in order of appearance, whatever their number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.distinct_texts import numbered


@given(st.lists(st.text(max_size=3)))
def test_numbers_lead_back_to_the_texts(words):
    different, number = numbered(words)
    assert different == list(dict.fromkeys(words))
    assert [different[each] for each in number.tolist()] == words
    assert number.dtype == np.int64


@pytest.mark.parametrize("count", [0, 1, 2, 4095, 4096, 4097, 8193])
def test_chunks_have_the_same_numbers(count):
    different, number = numbered([f"word {each % 5000}" for each in range(count)])
    assert len(different) == min(count, 5000)
    np.testing.assert_array_equal(number, np.arange(count) % 5000)


@pytest.mark.parametrize("words", [[["AA"]], ["AA", {}], ["AA"] * 4096 + [[]]])
def test_what_has_no_hash_is_a_type_error(words):
    with pytest.raises(TypeError, match="unhashable"):
        numbered(words)
