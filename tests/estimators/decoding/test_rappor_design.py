"""The sparse design matches the hash, and is built once for equal inputs."""

import numpy as np
import pytest
from scipy.sparse import csc_array

from deniable.estimators.decoding.design import (
    bloom_design,
    design_of_positions,
    one_block_per_cohort,
    weighted_gram,
)
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_positions, bloom_rows
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator

WORDS = ["apple", "banana", "Zürich", ""]


def mechanism_of(bits, hashes, cohorts=3):
    return Rappor.from_probabilities(bits, hashes, cohorts, 0.25, 0.35, 0.65)


@pytest.mark.parametrize(("bits", "hashes"), [(8, 16), (128, 2), (256, 3), (264, 8), (4096, 4)])
def test_columns_set_the_hashed_positions(bits, hashes):
    """8 bits with 16 hashes always collide; above 256 bits a position uses two bytes of the digest."""
    mechanism = mechanism_of(bits, hashes)
    expected = np.zeros((3 * bits, len(WORDS)))
    for column, word in enumerate(WORDS):
        for cohort in range(3):
            expected[[cohort * bits + bit for bit in bloom_positions(word, cohort, mechanism)], column] = 1
    np.testing.assert_array_equal(bloom_design(WORDS, mechanism).toarray(), expected)


def test_columns_match_the_bloom_filters_of_producers():
    mechanism = mechanism_of(128, 2)
    design = bloom_design(WORDS, mechanism).toarray()
    for column, word in zip(design.T, WORDS, strict=True):
        packed = bloom_rows([word] * 3, np.arange(3), mechanism)
        np.testing.assert_array_equal(column, np.unpackbits(packed, bitorder="little"))


def test_design_is_cached_for_equal_inputs_only():
    def kept():
        return bloom_design(["ab", "c"], mechanism_of(64, 2))

    assert bloom_design(("ab", "c"), Rappor.from_probabilities(64, 2, 3, 0.5, 0.1, 0.9)) is kept()
    for words in (["a", "bc"], ["c", "ab"], ["abc"]):
        assert bloom_design(words, mechanism_of(64, 2)) is not kept()
    for other in (mechanism_of(128, 2), mechanism_of(64, 3), mechanism_of(64, 2, cohorts=4)):
        assert bloom_design(["ab", "c"], other) is not kept()


def test_repeated_position_counts_once():
    design = design_of_positions(np.array([[2, 0, 2], [1, 1, 1]], np.int32), 4)
    np.testing.assert_array_equal(design.toarray(), [[1, 0], [0, 1], [1, 0], [0, 0]])


def test_blocks_and_grams_match_dense_algebra():
    dense = (generator(1).random((6, 4)) < 0.5).astype(float)
    design, weight = csc_array(dense), np.arange(6.0)
    np.testing.assert_allclose(weighted_gram(design, weight), dense.T @ np.diag(weight) @ dense)
    blocks = one_block_per_cohort(design, 2).toarray()
    expected = np.zeros((6, 8))
    expected[:3, :4], expected[3:, 4:] = dense[:3], dense[3:]
    np.testing.assert_array_equal(blocks, expected)
