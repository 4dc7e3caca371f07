"""Bloom bits equal those of google/rappor's clients."""

from functools import partial
from hashlib import md5

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_positions, bloom_rows
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.messages import PinMessages

SMALL = Rappor.from_probabilities(16, 2, 4, 0.5, 0.5, 0.75)
WIDE = Rappor.from_probabilities(512, 8, 4, 0.5, 0.5, 0.75)
WIDEST_OF_BYTES = Rappor.from_probabilities(256, 16, 4, 0.5, 0.5, 0.75)
MANY_COHORTS = Rappor.from_probabilities(16, 2, 200, 0.5, 0.5, 0.75)  # too many for a lookup table


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("apple", [(5, 1), (26, 26), (38, 34), (63, 62)]),
        ("banana", [(12, 14), (28, 24), (37, 34), (62, 49)]),
        ("carrot", [(4, 12), (25, 21), (48, 38), (61, 54)]),
    ],
)
def test_fixed_points_of_google_rappor(word, expected):
    """One-based positions in its map files: cohort * bits + bit + 1."""
    for cohort, positions in enumerate(expected):
        assert tuple(cohort * 16 + bit + 1 for bit in bloom_positions(word, cohort, SMALL)) == positions


def test_wide_filters_use_two_digest_bytes_per_hash():
    digest = md5(b"\x00\x00\x00\x03\xc3\xa9t\xc3\xa9", usedforsecurity=False).digest()
    expected = tuple((digest[i] * 256 + digest[i + 1]) % 512 for i in range(0, 16, 2))
    assert bloom_positions("été", 3, WIDE) == expected


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3)), max_size=30),
    st.sampled_from([SMALL, WIDE, WIDEST_OF_BYTES, MANY_COHORTS]),
)
def test_rows_set_exactly_the_positions(pairs, mechanism):
    words = [word for word, _ in pairs]
    rows = bloom_rows(words, np.array([cohort for _, cohort in pairs], np.uint16), mechanism)
    assert rows.dtype == np.uint8
    assert rows.shape == (len(pairs), mechanism.bits // 8)
    for row, (word, cohort) in zip(rows, pairs, strict=True):
        filter_bits = int.from_bytes(row.tobytes(), "little")
        assert filter_bits == sum(1 << bit for bit in set(bloom_positions(word, cohort, mechanism)))


def test_messages(pin_messages: PinMessages) -> None:
    words = ["apple", "banana"]
    pin_messages(
        {f"cohort is {each}": partial(bloom_positions, "apple", each, SMALL) for each in (-1, 4)}
        | {f"a cohort is {each}": partial(bloom_rows, words, np.array([0, each]), SMALL) for each in (-1, 4)}
        | {"more cohorts than words": partial(bloom_rows, words, np.zeros(3, np.uint16), SMALL)}
    )
