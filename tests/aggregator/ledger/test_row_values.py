"""Rows of `state` and `counts`: decoding inverts encoding, and damage raises RowError only."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.acceptance import REASONS
from deniable.aggregator.ledger.row_values import CounterPage, LedgerProgress, Published, RowError
from deniable.aggregator.ledger.terms import Terms, WindowTerms
from tests.support.messages import PinMessages

fingerprints = st.integers(0, 2**64 - 1)
starts = st.integers(0, 253_402_300_799)
keys = st.one_of(
    st.builds(row_keys.CountKey, fingerprints, starts, st.integers(0, 65535), st.integers(0, 2**32 - 1)),
    st.builds(row_keys.IdsKey, fingerprints, starts, st.integers(0, 2**63 - 1)),
    st.builds(row_keys.RejectedKey, fingerprints, starts, st.sampled_from(REASONS)),
    st.builds(row_keys.PublishedKey, fingerprints, starts),
    st.sampled_from(row_keys.SingleKey),
)
offsets = st.integers(0, 2**63 - 1)


@given(keys)
def test_key_roundtrips(key: row_keys.Key) -> None:
    read = row_keys.decode_key(row_keys.encode_key(key))
    assert read == key
    assert type(read) is type(key)


@given(st.lists(keys, unique=True))
def test_different_keys_have_different_bytes(distinct: list[row_keys.Key]) -> None:
    by_type = {(type(key), key) for key in distinct}
    assert len({row_keys.encode_key(key) for key in distinct}) == len(by_type)


@given(keys, st.integers(0, 65535))
def test_source_roundtrips(key: row_keys.Key, source: int) -> None:
    assert row_keys.split_source(row_keys.with_source(row_keys.encode_key(key), source)) == (key, source)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.lists(st.integers(0, 2**63 - 1), max_size=50),
)
def test_counters_roundtrip(reports: int, packs: int, counts: list[int]) -> None:
    row = row_values.encode_counters(CounterPage(reports, packs, np.array(counts, dtype=np.int64)))
    read = row_values.decode_counters(row)
    assert (read.reports, read.packs, read.counts.tolist()) == (reports, packs, counts)
    assert read.counts.dtype == np.int64


@pytest.mark.parametrize(
    ("highest", "size"),
    [(0, 1), (255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4), (2**32, 8), (2**63 - 1, 8)],
)
def test_counters_use_the_narrowest_integer(highest: int, size: int) -> None:
    one, two = (row_values.encode_counters(CounterPage(0, 0, np.full(n, highest, np.int64))) for n in (1, 2))
    assert len(two) - len(one) == size


def test_largest_page_stays_below_one_mebibyte() -> None:
    page = np.full(row_values.PAGE_COUNTERS, 2**63 - 1, np.int64)
    assert len(row_values.encode_counters(CounterPage(0, 0, page))) < 2**20 - 1024
    assert row_values.IDS_PER_ROW * row_values.ID_BYTES < 2**20 - 1024


@given(offsets, offsets, offsets)
def test_progress_roundtrips(position: int, watermark_ms: int, whole_from: int) -> None:
    progress = LedgerProgress(position, watermark_ms, watermark_ms, whole_from)
    assert row_values.decode_progress(row_values.encode_progress(progress)) == progress


@given(st.integers(0, 2**64 - 1), st.booleans())
def test_notes_roundtrip(number: int, final: bool) -> None:
    assert row_values.decode_rejected(row_values.encode_rejected(number)) == number
    assert row_values.decode_published(row_values.encode_published(Published(number, final))) == Published(
        number, final
    )


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.booleans())
def test_publications_ahead_of_their_packs_roundtrip(packs: int, ahead: int, final: bool) -> None:
    published = Published(min(packs + ahead, 2**64 - 1), final, ahead)
    assert row_values.decode_published(row_values.encode_published(published)) == published


def test_what_replaces_a_publication_has_a_higher_revision() -> None:
    """With the same packs it repeats the revision: a final estimate after its provisional one."""
    first = Published(0, False).followed_by(100, final=False)
    assert first == Published(100, False)
    assert first.followed_by(100, final=True) == Published(100, True)
    fewer = first.followed_by(80, final=True)
    assert (fewer, fewer.packs) == (Published(101, True, 21), 80)
    assert fewer.followed_by(81, final=True) == Published(102, True, 21)
    assert fewer.followed_by(200, final=True) == Published(200, True)


DECODERS = [
    row_keys.decode_key,
    row_keys.split_source,
    row_values.decode_counters,
    row_values.decode_progress,
    row_values.decode_rejected,
    row_values.decode_published,
]
GOOD = [
    row_values.encode_counters(CounterPage(3, 1, np.array([1, 2], dtype=np.int64))),
    row_values.encode_progress(LedgerProgress(1, 2, 2, 3)),
    row_values.encode_rejected(7),
    row_values.encode_published(Published(1, True)),
]


@pytest.mark.parametrize("decode", DECODERS, ids=lambda decode: decode.__name__)
@given(data=st.binary(max_size=80) | st.sampled_from(b"CIREOP").map(lambda b: bytes([b])))
def test_damaged_bytes_raise_row_error_only(decode: Callable[[bytes], object], data: bytes) -> None:
    for damaged in (data, b"\x01" + data, b"C" + data, b"I" + data, b"R" + data, b"E" + data, b"O" + data):
        with suppress(RowError):
            decode(damaged)


@pytest.mark.parametrize(("decode", "row"), list(zip(DECODERS[2:], GOOD, strict=True)))
def test_newer_version_is_refused(decode: Callable[[bytes], object], row: bytes) -> None:
    with pytest.raises(RowError, match="version"):
        decode(b"\x02" + row[1:])


@pytest.mark.parametrize("decode", [*DECODERS, row_values.decode_terms], ids=lambda decode: decode.__name__)
@pytest.mark.parametrize("head", [b"", b"\x01", b"C", b'\x01{"name":'])
def test_damage_is_reported_without_bytes_of_the_row(decode: Callable[[bytes], object], head: bytes) -> None:
    with pytest.raises(RowError) as caught:
        decode(head + b"sender of \xff")
    assert "sender" not in str(caught.value)


def test_messages(pin_messages: PinMessages) -> None:
    """As int64, 2^63 would be negative."""
    many_reports = row_values.encode_counters(CounterPage(2**63, 1, np.zeros(1, dtype=np.int64)))
    largest = row_values.encode_counters(CounterPage(1, 1, np.array([2**63 - 1])))
    assert largest.endswith(b"\xff" * 7 + b"\x7f")
    counters = row_values.encode_counters(CounterPage(1, 1, np.array([300, 1])))
    terms = row_values.encode_terms(Terms("a", 1, 4, 1, 10, 0, (WindowTerms(0, 1, 1, 1),)))
    keys = [b"C", b"I" + bytes(5), b"R" + bytes(3), b"R" + bytes(16) + b"\xff", b"OO"]
    names = ["position", "watermark_ms", "closed_until_ms", "whole_from"]

    def progress(name: str) -> object:
        return row_values.decode_progress(row_values.encode_progress(LedgerProgress(**{name: -1})))

    pin_messages(
        {f"the key {each!r}": partial(row_keys.decode_key, each) for each in keys}
        | {
            "a key of a newer kind": partial(row_keys.decode_key, b"Znewe"),
            "a key of counts without its source": partial(row_keys.split_source, b"P\0"),
            "a publication that is cut": partial(row_values.decode_published, bytes([1]) + bytes(16)),
            "a publication of less than nothing": partial(
                row_values.decode_published, row_values.encode_published(Published(3, True, 4))
            ),
            "2^63 reports": partial(row_values.decode_counters, many_reports),
            "a counter of 2^63": partial(row_values.decode_counters, largest[:-1] + b"\x80"),
            "counters that are cut": partial(row_values.decode_counters, counters[:-1]),
            "rejections that are cut": partial(
                row_values.decode_rejected, row_values.encode_rejected(1)[:-1]
            ),
            "a row of version 2": partial(row_values.decode_rejected, b"\x02" + bytes(8)),
            "terms that are not UTF-8": partial(row_values.decode_terms, b'\x01{"name":"\xe6"}'),
            "terms that are nested too deep": partial(row_values.decode_terms, b'\x01{"a":' + b"[" * 100_000),
            "empty terms": partial(row_values.decode_terms, b"\x01{}"),
            "terms with empty windows": partial(
                row_values.decode_terms, terms.replace(b'"window_seconds":10', b'"window_seconds":0')
            ),
        }
        | {f"a negative {each}": partial(progress, each) for each in names}
    )
