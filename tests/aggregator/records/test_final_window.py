"""Pages of a final window: roundtrip, refusal of damage, and bounded record size."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.records import final_window
from deniable.aggregator.records.final_window import (
    FinalWindow,
    Page,
    PageRun,
    decode_page,
    encode_pages,
    join_pages,
)
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.aggregator.builders import FRUIT, PLACE, T0
from tests.support.messages import PinMessages

RECORD_BYTES = 1_048_588  # limit of the broker
LARGE = replace(PLACE, mechanism=Rappor.from_probabilities(64, 2, 700, 0.25, 0.35, 0.65))  # 2 pages


def window_of(collection: Collection, highest: int = 5000, packs: int = 7, seed: int = 1) -> FinalWindow:
    chance = np.random.default_rng(seed)
    counts = chance.integers(0, highest, (collection.cohorts, collection.width), endpoint=True)
    sizes = chance.integers(0, highest, collection.cohorts, endpoint=True)
    return FinalWindow.of(collection, T0, WindowCounts(counts, sizes, packs, rejected=2))


def read(window: FinalWindow) -> list[Page]:
    return [decode_page(key, value) for key, value in encode_pages(window)]


def check_same(found: WindowCounts, expected: WindowCounts) -> None:
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.cohort_sizes, expected.cohort_sizes)
    assert (found.packs, found.rejected) == (expected.packs, expected.rejected)


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LARGE], ids=["k-rr", "rappor", "two pages"])
@given(highest=st.sampled_from([0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1]))
def test_written_rows_are_read_back(collection: Collection, highest: int) -> None:
    window = window_of(collection, highest)
    pages = read(window)
    check_same(join_pages(pages, collection), window.counts)
    assert {page.name for page in pages} == {collection.name}
    assert {page[:2] for page in pages} == {(collection.fingerprint, T0)}
    assert {page.window_seconds for page in pages} == {10}


def test_bytes_match_version_1() -> None:
    window = FinalWindow(7, "fruit", 60, 10, WindowCounts(np.array([[300, 1]]), np.array([301]), 5, 2))
    [(key, value)] = encode_pages(window)
    assert key.hex() == "57" + "0700000000000000" + "3c00000000000000" + "00000000"
    assert value.hex() == (
        "01" + "02" + "01000000" + "0500000000000000" + "0200000000000000" + "0a000000" + "0100" + "05"
        "6672756974" + "2d01000000000000" + "2c01" + "0100"
    )


@pytest.mark.parametrize(
    ("mechanism", "pages"),
    [
        (Rappor.from_probabilities(4096, 2, 64, 0.25, 0.35, 0.65), 8),
        (KRR.from_epsilon(1_400_000, 2.0), 43),
        (Rappor.from_probabilities(8, 1, 65_535, 0.25, 0.35, 0.65), 16),
    ],
    ids=["4096 bits, 64 cohorts", "1,400,000 values", "65,535 cohorts"],
)
def test_page_stays_below_the_brokers_limit(mechanism: KRR | Rappor, pages: int) -> None:
    """With the widest counters and the longest name."""
    collection = Collection(name="n" * 63, mechanism=mechanism)
    counts = np.full((collection.cohorts, collection.width), 2**62)
    window = FinalWindow.of(
        collection, T0, WindowCounts(counts, np.full(collection.cohorts, 2**62), 2**62, 2**62)
    )
    sizes = [len(key) + len(value) for key, value in encode_pages(window)]
    assert len(sizes) == pages
    assert max(sizes) < RECORD_BYTES - 4096  # for headers and the batch overhead


def test_counters_use_the_narrowest_integer_of_their_page() -> None:
    window = window_of(LARGE, 200)
    window.counts.counts[-1, -1] = 70_000
    first, second = [len(value) for _, value in encode_pages(window)]
    head = 29 + len("place")
    assert first == head + 8 * 700 + final_window.PAGE_COUNTERS
    assert second == head + 4 * (700 * 64 - final_window.PAGE_COUNTERS)


@pytest.mark.parametrize(
    "chosen", [[0], [1], [1, 0], [0, 0], [0, 1, 1], [0, "newer"], [0, "of another"]], ids=str
)
def test_inconsistent_pages_are_refused(chosen: list[int | str]) -> None:
    pages = {
        "newer": read(window_of(LARGE, packs=8))[1],
        "of another": read(window_of(LARGE)._replace(window_start=T0 + 10))[1],
        **dict(enumerate(read(window_of(LARGE)))),
    }
    with pytest.raises(RowError, match="place"):
        join_pages([pages[each] for each in chosen], LARGE)


@pytest.mark.parametrize(
    "changed",
    [
        {"fingerprint": 1},
        {"cohorts": 699},
        {"counters": np.zeros(3, np.uint8)},
        {"counters": np.full(700 * 64, 2**63, np.uint64)},
        {"cohort_sizes": np.full(700, 2**63, np.uint64)},
        {"packs": 2**63},
        {"rejected": 2**63},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_window_of_another_shape_or_size_is_refused(changed: dict[str, object]) -> None:
    counters = np.zeros(700 * 64, np.uint8)
    page = read(window_of(LARGE))[0]._replace(pages=1, counters=counters)
    assert join_pages([page], LARGE).reports > 0
    with pytest.raises(RowError, match="place"):
        join_pages([page._replace(**changed)], LARGE)


def test_last_page_completes_the_window() -> None:
    one, two = read(window_of(LARGE))
    other, last = read(window_of(LARGE, packs=9))
    run = PageRun()
    assert [len(run.take(page)) for page in (one, two, two, one, other, last)] == [0, 2, 0, 0, 0, 2]
    assert [len(run.take(page)) for page in (two, last, one, last, two)] == [0, 0, 0, 0, 0]


@given(st.data())
def test_damaged_bytes_raise_row_error_only(data: st.DataObject) -> None:
    [(key, value)] = encode_pages(window_of(PLACE))
    place = data.draw(st.integers(0, len(value) - 1))
    damaged = bytearray(value[: data.draw(st.integers(0, len(value)))])
    damaged[place : place + 1] = data.draw(st.binary(max_size=3))
    with suppress(RowError):
        join_pages([decode_page(key, bytes(damaged))], PLACE)


def test_invalid_page_error_holds_no_payload() -> None:
    with pytest.raises(RowError) as caught:
        decode_page(b"key of a sender", b"payload of a sender")
    assert "sender" not in str(caught.value)


def test_messages(pin_messages: PinMessages) -> None:
    one, two = read(window_of(LARGE))
    [(key, value)] = encode_pages(window_of(PLACE))
    keys = {
        "an empty key": b"",
        "a key of one byte": b"k",
        "a key of another kind": b"C" + bytes(20),
        "the key of page 1 of 1": b"W" + bytes(16) + b"\x01" + bytes(3),
    }
    values = {
        "an empty value": b"",
        "an empty object": b"{}",
        "a value of version 2": b"\x02" + bytes(40),
    }
    pin_messages(
        {"pages in a wrong order": lambda: join_pages([two, one], LARGE)}
        | {what: partial(decode_page, wrong, value) for what, wrong in keys.items()}
        | {what: partial(decode_page, key, wrong) for what, wrong in values.items()}
    )
