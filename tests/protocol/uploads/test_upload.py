"""The upload format: golden vectors, round trips, and decoders that raise only UploadError."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol import wire
from deniable.protocol.uploads.frame import decode_frame, encode_frame
from deniable.protocol.uploads.upload import (
    MAX_UPLOAD_BYTES,
    Upload,
    UploadError,
    UploadGroup,
    decode_upload,
    encode_upload,
)
from tests.support.paths import VECTORS

EXPECTED = json.loads((VECTORS / "uploads.json").read_text())


def named(kind):
    return pytest.mark.parametrize("vector", EXPECTED[kind], ids=lambda vector: vector["name"])


def rows_of(group):
    reports = group["reports"]
    if isinstance(reports, dict):
        reports = [each % reports["cycle"] for each in range(reports["n"])]
    if group["mechanism"] == wire.RAPPOR_NUMBER:
        return len(reports), b"".join(map(bytes.fromhex, reports))
    size = wire.report_bytes(group["mechanism"], group["width"])
    return len(reports), b"".join(each.to_bytes(size, "little") for each in reports)


def upload_of(vector):
    groups = []
    for group in vector["groups"]:
        reports, rows = rows_of(group)
        numbers = (group["mechanism"], group["cohort"], group["window_start"], reports, group["width"])
        groups.append(UploadGroup(int(group["fingerprint"], 16), *numbers, rows))
    return Upload(bytes.fromhex(vector["upload_id"]), tuple(groups))


def bytes_of(vector):
    """Return a vector's bytes; of the largest upload, only the head and the checksum are stored."""
    data = vector["upload"]
    if isinstance(data, dict):
        rows = b"".join(rows_of(group)[1] for group in vector["groups"])
        return bytes.fromhex(data["head"]) + rows + bytes.fromhex(data["checksum"])
    return bytes.fromhex(data) + bytes(vector.get("zeros_appended", 0))


@named("good")
def test_good_vectors_decode_and_encode(vector):
    assert decode_upload(bytes_of(vector)) == upload_of(vector)
    assert encode_upload(upload_of(vector)) == bytes_of(vector)
    assert wire.partition_of(decode_upload(bytes_of(vector)).upload_id, 7) == vector["partition_of_7"]


@named("bad")
def test_bad_vectors_name_their_reason(vector):
    with pytest.raises(UploadError) as caught:
        decode_upload(bytes_of(vector))
    assert caught.value.reason == vector["reason"]
    assert str(caught.value).startswith(vector["reason"])


@named("good_frames")
def test_good_frames_decode_and_encode(vector):
    uploads = [bytes.fromhex(each) for each in vector["uploads"]]
    frame = bytes.fromhex(vector["frame"])
    assert decode_frame(frame) == uploads
    assert encode_frame(uploads) == frame


@named("bad_frames")
def test_bad_frames_name_their_reason(vector):
    frame = bytes.fromhex(vector["frame"]) + bytes(vector.get("zeros_appended", 0))
    with pytest.raises(UploadError) as caught:
        decode_frame(frame)
    assert caught.value.reason == vector["reason"]


def test_null_frame_is_malformed():
    with pytest.raises(UploadError, match=r"^malformed$"):
        decode_frame(None)


@st.composite
def groups(draw, most_reports=20):
    mechanism = draw(st.sampled_from([wire.RAPPOR_NUMBER, *wire.BUCKET_NUMBERS]))
    if mechanism == wire.RAPPOR_NUMBER:
        width = 8 * draw(st.integers(1, 20))
    else:
        width = draw(st.sampled_from([2, 256, 257, 65536, 65537, 2**31]) | st.integers(2, 2**31))
    reports = draw(st.integers(1, most_reports))
    size = reports * wire.report_bytes(mechanism, width)
    return UploadGroup(
        fingerprint=draw(st.integers(0, 2**64 - 1)),
        mechanism=mechanism,
        cohort=draw(st.integers(0, 2**16 - 1)),
        window_start=draw(st.integers(0, wire.MAX_WINDOW_START)),
        reports=reports,
        width=width,
        rows=draw(st.binary(min_size=size, max_size=size)),
    )


uploads = st.builds(
    Upload,
    st.binary(min_size=16, max_size=16),
    st.lists(groups(), min_size=1, max_size=4).map(tuple),
)


@pytest.mark.slow
@given(uploads)
def test_decode_after_encode_is_the_identity(upload):
    assert decode_upload(encode_upload(upload)) == upload


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: b"DNBU\x01" + tail))
def test_decode_of_any_bytes_raises_nothing_but_upload_error(data):
    with suppress(UploadError):
        decode_upload(data)


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda tail: b"DNBF\x01\x02\0" + tail))
def test_frame_of_any_bytes_raises_nothing_but_upload_error(data):
    with suppress(UploadError):
        assert encode_frame(decode_frame(data)) == data


@pytest.mark.slow
@given(uploads, st.data())
def test_decode_of_changed_bytes_raises_upload_error(upload, data):
    """CRC-32C detects every change within 32 consecutive bits, so no change of a single byte is missed."""
    changed = bytearray(encode_upload(upload))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(UploadError):
        decode_upload(bytes(changed))


@pytest.mark.slow
@given(uploads, st.data())
def test_decode_of_changed_fields_with_a_right_checksum(upload, data):
    """A sender who knows the format can compute the checksum; what decodes encodes to the same bytes."""
    changed = bytearray(encode_upload(upload)[:-4])
    place = data.draw(st.integers(4, len(changed) - 1))
    changed[place] = data.draw(st.integers(0, 255))
    sealed = bytes(changed) + crc32c(bytes(changed)).to_bytes(4, "little")
    with suppress(UploadError):
        assert encode_upload(decode_upload(sealed)) == sealed


GOOD = upload_of(EXPECTED["good"][0])
GROUP = GOOD.groups[0]


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GOOD, upload_id=bytes(15)),
        replace(GOOD, groups=()),
        replace(GOOD, groups=(GROUP,) * 65),
        *(
            replace(GOOD, groups=(replace(GROUP, **{field: value}),))
            for field, value in [
                ("fingerprint", 2**64),
                ("mechanism", 9),
                ("cohort", 65536),
                ("cohort", -1),
                ("window_start", -1),
                ("window_start", wire.MAX_WINDOW_START + 1),
                ("reports", 2),
                ("width", 1),
                ("rows", b""),
            ]
        ),
    ],
)
def test_encode_refuses_invalid_uploads(wrong):
    with pytest.raises(UploadError, match=r"^malformed$"):
        encode_upload(wrong)


def test_largest_upload_and_frame():
    rows = MAX_UPLOAD_BYTES - 23 - 27 - 4
    largest = replace(GROUP, reports=rows, rows=bytes(rows))
    assert len(encode_upload(replace(GOOD, groups=(largest,)))) == 65_536
    with pytest.raises(UploadError, match=r"^oversized$"):
        encode_upload(replace(GOOD, groups=(replace(largest, reports=rows + 1, rows=bytes(rows + 1)),)))
    assert len(encode_frame([bytes(1_000_000 - 7 - 4)])) == 1_000_000
    with pytest.raises(UploadError, match=r"^oversized$"):
        encode_frame([bytes(1_000_000 - 7 - 3)])


@pytest.mark.parametrize("wrong", [[], [b""], [b"a"] * 257])
def test_encode_frame_refuses_what_decode_would(wrong):
    with pytest.raises(UploadError, match=r"^malformed$"):
        encode_frame(wrong)


def test_rows_share_memory_with_the_upload():
    data = bytearray(encode_upload(GOOD))
    rows = decode_upload(data).groups[0].rows
    data[-5] = 42
    assert bytes(rows) == b"\x2a"
