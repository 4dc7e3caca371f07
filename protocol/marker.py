"""Markers: records of `reports` that are no packs, and show that time has passed.

Whatever a worker counts, the append time of each record moves its partition's watermark. A partition in which
nothing is reported gets a *marker* when a window waits for it: the broker that acknowledges it with acks=all
is the partition's leader, and what it appends later is later. An end offset proves neither.

A *relays' marker* says also until when relays have sent what devices uploaded. It is authenticated:

    0  4  magic "DNBM"    4  1  kind = 2    5  8  number    13  8  sent_ms    21  8  wait_ms    29  16  code

Rule: a marker cannot be forged into anything worse than a marker. The first kind holds nothing, so that a
copy, or one of a stranger, does no more than any record does: it moves the watermark to the time at which the
broker appended it. The second has a code under a key that only the ledgers hold, and a number that must rise.
"""

import hmac
import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

MARKER = b"DNBM\x01"  # the last byte is the kind
KEY_BYTES = 16
_CODE_BYTES = 16
_RELAYS = struct.Struct("<5sQqq")
_RELAYS_HEAD = b"DNBM\x02"
RELAYS_BYTES = _RELAYS.size + _CODE_BYTES


class RelaysSent(NamedTuple):
    """What a relays' marker says.

    Parameters
    ----------
    number : higher than that of every marker before it in the partition, in [1, 2^64).
    sent_ms : relays have sent all that was uploaded until then, append time in unix milliseconds.
    wait_ms : how long windows wait for relays after their grace, at most; 0 if no longer.
    """

    number: int
    sent_ms: int
    wait_ms: int


def is_marker(record: bytes | None) -> bool:
    """Whether a record claims to be a marker of either kind."""
    return record is not None and (record == MARKER or _is_relays(record))


def encode_relays(key: bytes, sent: RelaysSent) -> bytes:
    """Bytes of a relays' marker, under the key of the partition's ledger, KEY_BYTES."""
    head = _RELAYS.pack(_RELAYS_HEAD, *sent)
    return head + _code(key, head)


def decode_relays(key: bytes, record: bytes) -> RelaysSent | None:
    """Inverse of `encode_relays`; None unless the record is one, with this key."""
    head, code = record[: _RELAYS.size], record[_RELAYS.size :]
    if not _is_relays(record) or not hmac.compare_digest(code, _code(key, head)):
        return None
    return RelaysSent(*_RELAYS.unpack(head)[1:])


def closes_between(rhythms: Iterable[tuple[int, int]], first_ms: int, last_ms: int) -> bool:
    """Whether a window of any of these rhythms closes at a time in [first_ms, last_ms), unix milliseconds.

    Parameters
    ----------
    rhythms : window_seconds and grace_seconds, of each collection.
    first_ms, last_ms : bounds.
    """
    for window_seconds, grace_seconds in rhythms:
        length_ms, grace_ms = window_seconds * 1000, grace_seconds * 1000
        if -(-(first_ms - grace_ms) // length_ms) * length_ms + grace_ms < last_ms:
            return True
    return False


def _is_relays(record: bytes) -> bool:
    return len(record) == RELAYS_BYTES and record[:5] == _RELAYS_HEAD


def _code(key: bytes, head: bytes) -> bytes:
    return blake2b(head, key=key, digest_size=_CODE_BYTES).digest()
