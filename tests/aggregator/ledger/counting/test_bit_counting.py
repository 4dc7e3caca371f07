"""Vectorized counting against a literal implementation."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.aggregator.ledger.counting.bit_counting import (
    add_pack,
    count_bits,
    count_bits_of_groups,
    is_countable,
)
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol import wire
from tests.support.aggregator.builders import FRUIT, PLACE, pack_of


def counted(pack: wire.Pack) -> npt.NDArray[np.int64]:
    """Counts of the pack; adding it twice must double them."""
    assert is_countable(pack)
    once, twice = np.zeros(pack.width, np.int64), np.zeros(pack.width, np.int64)
    for counts in (once, twice, twice):
        add_pack(counts, pack)
    np.testing.assert_array_equal(twice, 2 * once)
    return once


@pytest.mark.slow
@pytest.mark.parametrize(("k", "size"), [(4, 1), (256, 1), (257, 2), (65536, 2), (65537, 4), (70000, 4)])
@settings(max_examples=30)
@given(data=st.data())
def test_buckets_are_counted(k: int, size: int, data: st.DataObject) -> None:
    collection = replace(FRUIT, mechanism=KRR.from_epsilon(k, 2.0), values=())
    reports = data.draw(st.lists(st.integers(0, k - 1) | st.just(k - 1), min_size=1, max_size=30))
    pack = pack_of(collection, reports=reports)
    assert len(pack.payload) == size * len(reports)
    counts = counted(pack)
    assert {bucket: counts[bucket] for bucket in np.flatnonzero(counts)} == Counter(reports)


@pytest.mark.parametrize(("k", "wrong"), [(4, 4), (4, 255), (300, 300), (65537, 65537), (65537, 2**32 - 1)])
def test_bucket_out_of_range_rejects_the_pack(k: int, wrong: int) -> None:
    collection = replace(FRUIT, mechanism=KRR.from_epsilon(k, 2.0), values=())
    assert not is_countable(pack_of(collection, reports=[0, wrong, 1]))


@given(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=40))
def test_bits_are_counted(reports: list[int]) -> None:
    expected = [sum(report >> bit & 1 for report in reports) for bit in range(16)]
    assert counted(pack_of(PLACE, reports=reports)).tolist() == expected


@pytest.mark.parametrize("count", [65535, 65536, 140_000])
def test_packs_may_overflow_a_16_bit_sum(count: int) -> None:
    pack = replace(pack_of(PLACE), width=8, reports=count, payload=b"\x05" * count)
    wire.encode(pack)  # it fits into a record
    assert counted(pack).tolist() == [count, 0, count, 0, 0, 0, 0, 0]


SIZES = [1, 254, 255, 256, 4095, 4096, 4097, 7 * 4096, 7 * 4096 + 55, 120_001]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [8, 24, 128])
def test_each_bit_is_counted_in_packs_of_every_size(size: int, width: int) -> None:
    """All bits set, for the longest carries, and random rows."""
    drawn = np.random.default_rng(size).integers(0, 256, (size, width // 8), dtype=np.uint8)
    for rows in (np.full_like(drawn, 255), drawn):
        expected = [int((rows[:, bit // 8] >> bit % 8 & 1).sum()) for bit in range(width)]
        assert count_bits(rows).tolist() == expected


@pytest.mark.parametrize("width", [8, 24, 128])
@pytest.mark.parametrize("sizes", [[1], [1] * 300, [256, 1, 700], [3, 5000, 2], [60_000, 1], [2000] * 40])
def test_bits_of_groups_are_counted_as_each_group_alone(sizes: list[int], width: int) -> None:
    """Groups of every size: below and above what a byte can sum, a cache holds, and one count takes."""
    bounds = np.cumsum([0, *sizes])
    rows = np.random.default_rng(1).integers(0, 256, (int(bounds[-1]), width // 8), np.uint8)
    counted = count_bits_of_groups(rows, bounds)
    alone = [
        np.unpackbits(rows[first:end], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        for first, end in pairwise(bounds.tolist())
    ]
    np.testing.assert_array_equal(counted, np.array(alone))
