"""Relays' markers cannot be forged, and windows' ends are found wherever they lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol.marker import (
    MARKER,
    RELAYS_BYTES,
    RelaysSent,
    closes_between,
    decode_relays,
    encode_relays,
    is_marker,
)

KEY = bytes(range(16))
SENT = RelaysSent(7, 1_767_225_600_123, 900_000)
RECORD = bytes.fromhex(
    "444e424d0207000000000000007ba8da769b010000a0bb0d00000000002d806c2526268d014db2f696d1891e30"
)


def test_golden_bytes() -> None:
    assert encode_relays(KEY, SENT) == RECORD
    assert decode_relays(KEY, RECORD) == SENT
    assert is_marker(RECORD)
    assert is_marker(MARKER)


def test_each_changed_byte_is_noticed() -> None:
    for place in range(RELAYS_BYTES):
        changed = RECORD[:place] + bytes([RECORD[place] ^ 1]) + RECORD[place + 1 :]
        assert decode_relays(KEY, changed) is None


def test_who_lacks_the_key_writes_none() -> None:
    for record in (encode_relays(bytes(16), SENT), RECORD[:-1], RECORD + b"\0", MARKER, b"", b"no marker"):
        assert decode_relays(KEY, record) is None
    assert not is_marker(None)
    assert not is_marker(RECORD[:-1])


RHYTHMS = st.lists(st.tuples(st.integers(1, 7), st.integers(0, 9)), max_size=3)


@pytest.mark.slow
@given(RHYTHMS, st.integers(-1, 30_000), st.integers(0, 9000))
def test_a_close_is_found_iff_there_is_one(rhythms: list[tuple[int, int]], first: int, length: int) -> None:
    """The closes are those of every window from long before on."""
    closes = {
        (number * window + window + grace) * 1000 for window, grace in rhythms for number in range(-20, 50)
    }
    expected = any(first <= each < first + length for each in closes)
    assert closes_between(rhythms, first, first + length) == expected
