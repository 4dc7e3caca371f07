"""The groups of a frame as arrays are those that the scalar decoder finds, with the same reasons."""

from collections import Counter

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.upload import UploadError, decode_upload, encode_upload
from deniable.relay.columns import decode_columns
from tests.protocol.uploads.test_upload import EXPECTED, bytes_of
from tests.protocol.uploads.test_upload import uploads as valid


def sealed(body):
    return body + crc32c(body).to_bytes(4, "little")


@st.composite
def changed(draw):
    """Return an upload with one byte changed and a right checksum."""
    body = bytearray(encode_upload(draw(valid))[:-4])
    body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return sealed(bytes(body))


anything = st.one_of(
    valid.map(encode_upload),
    changed(),
    st.binary(min_size=1, max_size=80),
    st.binary(min_size=1, max_size=80).map(lambda tail: sealed(b"DNBU\x01" + tail)),
)


def check(uploads):
    groups, damaged = decode_columns(encode_frame(uploads))
    expected, reasons = [], Counter()
    for number, data in enumerate(uploads):
        try:
            upload = decode_upload(data)
        except UploadError as error:
            reasons[error.reason] += 1
            continue
        halves = [int.from_bytes(upload.upload_id[place : place + 8], "little") for place in (0, 8)]
        for group in upload.groups:
            numbers = (group.fingerprint, group.mechanism, group.cohort, group.window_start, group.width)
            expected.append((number, *halves, *numbers, bytes(group.rows)))
    found = []
    for place in range(len(groups)):
        one = groups.take([place])
        columns = (
            *(one.upload, one.low, one.high),
            *(one.fingerprint, one.mechanism, one.cohort, one.window, one.width),
        )
        found.append((*(int(each[0]) for each in columns), one.rows().tobytes()))
    assert damaged == reasons
    assert sorted(found) == sorted(expected)


@pytest.mark.slow
@given(st.lists(anything, min_size=1, max_size=8))
def test_columns_are_what_the_scalar_decoder_finds(uploads):
    check(uploads)


def test_columns_of_all_vectors():
    data = [bytes_of(vector) for kind in ("good", "bad") for vector in EXPECTED[kind]]
    check([each for each in data if each])
