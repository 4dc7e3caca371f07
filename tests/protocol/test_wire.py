"""The wire format: golden vectors, round trips, and `decode`, which raises only WireError."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.protocol import wire
from deniable.protocol.wire import Pack, WireError, bit_rows, buckets, decode, encode, partition_of
from tests.support.paths import VECTORS

EXPECTED = json.loads((VECTORS / "wire.json").read_text())


def named(vectors):
    return pytest.mark.parametrize("vector", vectors, ids=lambda vector: vector["name"])


def pack_of(vector):
    record = bytes.fromhex(vector["record"])
    return Pack(
        mechanism=vector["mechanism"],
        cohort=vector["cohort"],
        fingerprint=int(vector["fingerprint"], 16),
        window_start=vector["window_start"],
        reports=len(vector["reports"]),
        width=vector["width"],
        pack_id=bytes.fromhex(vector["pack_id"]),
        payload=record[52:],
    )


@named(EXPECTED["good"])
def test_good_vectors_decode_and_encode(vector):
    record = bytes.fromhex(vector["record"])
    assert decode(record) == pack_of(vector)
    assert encode(pack_of(vector)) == record


@named(EXPECTED["good"])
def test_reports_of_good_vectors(vector):
    pack = decode(bytes.fromhex(vector["record"]))
    if pack.mechanism == wire.RAPPOR_NUMBER:
        assert bit_rows(pack).shape == (pack.reports, pack.width // 8)
        assert [bytes(row).hex() for row in bit_rows(pack)] == vector["reports"]
    else:
        assert buckets(pack).tolist() == vector["reports"]


@named(EXPECTED["bad"])
def test_bad_vectors_name_their_reason(vector):
    record = bytes.fromhex(vector["record"]) + bytes(vector.get("zeros_appended", 0))
    with pytest.raises(WireError) as caught:
        decode(record)
    assert caught.value.reason == vector["reason"] == str(caught.value)


def test_next_version_keeps_this_reader(monkeypatch):
    """A version is added as documented: its packs count beside those of older producers."""

    def decode_next(record):
        header = bytearray(record[:48])
        header[4] = wire.VERSION
        return decode(
            b"".join((header, crc32c(record[52:], crc32c(header)).to_bytes(4, "little"), record[52:]))
        )

    records = [bytes.fromhex(vector["record"]) for vector in EXPECTED["good"]]
    packs = [pack_of(vector) for vector in EXPECTED["good"]]
    newer = [record[:4] + b"\x02" + record[5:] for record in records]
    for record in newer:
        with pytest.raises(WireError, match=r"^unsupported_version$"):
            decode(record)
    monkeypatch.setitem(wire.DECODERS, 2, decode_next)
    assert [decode(record) for record in [*records, *newer]] == [*packs, *packs]


def test_null_value_is_malformed():
    with pytest.raises(WireError, match=r"^malformed$"):
        decode(None)


def test_checksum_is_crc_32c():
    """Not the CRC-32 of zlib: the check value of the CRC catalogue."""
    assert f"{crc32c(b'123456789'):08x}" == EXPECTED["crc32c_of_123456789"]


@st.composite
def packs(draw):
    mechanism = draw(st.sampled_from([wire.RAPPOR_NUMBER, *wire.BUCKET_NUMBERS]))
    if mechanism == wire.RAPPOR_NUMBER:
        width = 8 * draw(st.integers(1, 512))
    else:
        width = draw(st.sampled_from([2, 256, 257, 65536, 65537, 2**31]) | st.integers(2, 2**31))
    reports = draw(st.integers(1, 20))
    size = reports * wire.report_bytes(mechanism, width)
    return Pack(
        mechanism=mechanism,
        cohort=draw(st.integers(0, 2**16 - 1)),
        fingerprint=draw(st.integers(0, 2**64 - 1)),
        window_start=draw(st.integers(0, wire.MAX_WINDOW_START)),
        reports=reports,
        width=width,
        pack_id=draw(st.binary(min_size=16, max_size=16)),
        payload=draw(st.binary(min_size=size, max_size=size)),
    )


@given(packs())
def test_decode_after_encode_is_the_identity(pack):
    assert decode(encode(pack)) == pack


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: b"DNBL\x01" + tail))
def test_decode_of_any_bytes_raises_nothing_but_wire_error(record):
    with suppress(WireError):
        decode(record)


@pytest.mark.slow
@given(packs(), st.data())
def test_decode_of_mutated_records_raises_wire_error(pack, data):
    """CRC-32C detects every change within 32 consecutive bits, so no change of a single byte is missed."""
    record = bytearray(encode(pack))
    place = data.draw(st.integers(0, len(record) - 1))
    record[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WireError):
        decode(bytes(record))


@pytest.mark.slow
@given(packs(), st.data())
def test_decode_of_fields_out_of_range_with_a_right_checksum(pack, data):
    """A sender who knows the format can compute the checksum; the fields must still be consistent."""
    record = bytearray(encode(pack))
    field = data.draw(st.sampled_from([slice(5, 6), slice(16, 24), slice(24, 28), slice(28, 32)]))
    record[field] = data.draw(st.binary(min_size=field.stop - field.start, max_size=field.stop - field.start))
    record[48:52] = crc32c(bytes(record[52:]), crc32c(bytes(record[:48]))).to_bytes(4, "little")
    with suppress(WireError):
        decoded = decode(bytes(record))
        assert decoded.reports >= 1
        assert decoded.reports * wire.report_bytes(decoded.mechanism, decoded.width) == len(decoded.payload)


GOOD = pack_of(EXPECTED["good"][0])


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GOOD, cohort=65536),
        replace(GOOD, cohort=-1),
        replace(GOOD, fingerprint=2**64),
        replace(GOOD, window_start=-1),
        replace(GOOD, window_start=wire.MAX_WINDOW_START + 1),
        replace(GOOD, pack_id=bytes(15)),
        replace(GOOD, pack_id=bytes(17)),
        replace(GOOD, reports=4),
        replace(GOOD, mechanism=9),
    ],
)
def test_encode_refuses_invalid_packs(wrong):
    with pytest.raises(WireError, match=r"^malformed$"):
        encode(wrong)


def test_largest_record():
    most = wire.MAX_RECORD_BYTES - wire.HEADER_BYTES
    record = encode(replace(GOOD, reports=most, payload=bytes(most)))
    assert len(record) == 1_000_000
    assert decode(record).reports == most
    with pytest.raises(WireError, match=r"^oversized$"):
        encode(replace(GOOD, reports=most + 1, payload=bytes(most + 1)))


def test_views_share_memory_with_the_record():
    record = bytes.fromhex(EXPECTED["good"][0]["record"])
    assert np.shares_memory(buckets(decode(record)), np.frombuffer(record, np.uint8))


@pytest.mark.parametrize(("k", "size"), [(2, 1), (256, 1), (257, 2), (65536, 2), (65537, 4), (2**31, 4)])
def test_buckets_are_as_narrow_as_k_allows(k, size):
    assert wire.bucket_dtype(k).itemsize == wire.report_bytes(wire.KRR_NUMBER, k) == size
    assert np.iinfo(wire.bucket_dtype(k)).max >= k - 1


def test_sizes_of_many_are_those_of_each():
    edges = [0, 2, 8, 2**8, 2**16, wire.MAX_BITS, wire.MAX_BUCKETS]
    pairs = [(number, edge + by) for number in range(256) for edge in edges for by in (-8, -1, 0, 1, 8)]
    mechanism, width = np.array(pairs).T
    sizes = wire.report_sizes(mechanism.astype(np.uint8), width)
    assert sizes.tolist() == [wire.report_bytes(*pair) for pair in pairs]


def test_partition_is_the_little_endian_id_modulo_partitions():
    assert partition_of(bytes([1, 2, 0, 0, 0, 0, 0, 0]) + bytes(8), 7) == (1 + 2 * 256) % 7
    assert partition_of(bytes(7) + b"\xff" + b"\xff" * 8, 1000) == (255 * 256**7) % 1000


def test_mechanism_numbers():
    assert KRR.from_epsilon(4, 1.0).wire_number == 1
    assert Rappor.from_probabilities(8, 1, 1, 0.5, 0.25, 0.75).wire_number == 2
    assert HotRappor.from_probabilities(8, 1, 0.5, 0.25, 0.75).wire_number == 2
    assert LongitudinalKRR.from_epsilons(4, 2.0, 1.0).wire_number == 3
    assert SquareWave.from_epsilon(0.0, 1.0, 256, 1.0).wire_number == 6
    assert PairKRR.from_epsilons(3, 4, 1.0, 1.0).wire_number == 7
    assert LocalHash.from_epsilon(1.0).wire_number == 4
    assert LongitudinalHash.from_epsilons(2.0, 1.0).wire_number == 5
    assert PrefixTree.from_epsilon((2, 4), 1.0).wire_number == 4
    assert SubsetSelection.from_epsilon(4, 1.0).wire_number == 2
