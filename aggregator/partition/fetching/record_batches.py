"""Kafka's record batches, read into runs with arrays: magic 2, not compressed. Pure.

A record is a sequence of zigzag varints and texts, so each begins where the former ends. Records of equal
length have equal first bytes at equal distances: whole stretches of them are found by one comparison. What is
no plain batch, or damaged, is left to aiokafka's own parser, which also knows the errors.

Source: https://kafka.apache.org/documentation/#messageformat
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from deniable.aggregator.ledger.outcomes import MOST_HEADERS, Headers
from deniable.aggregator.ledger.runs.run import Integers, Run

_HEADER = Struct(">qiibIhiqqqhii")
_LENGTH = Struct(">qi")
_EPOCH = Struct(">i")  # after the length
_CHECKED_FROM = 21  # the checksum covers attributes and all that follows
_MAGIC_AT = 16
_COMPRESSION, _LOG_APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20
_FIRST_BLOCK = 32  # records that may have equal length; doubled as long as they have
_ALONE = 64  # records that are walked one by one after lengths have differed
_MOST_VARINT = 5  # bytes of a record's length

Bytes = npt.NDArray[np.uint8]


class DamagedBatchError(Exception):
    """The batch is not as the format says; aiokafka's parser finds out why."""


class RecordBatch(NamedTuple):
    """A batch within the bytes of a fetch, which begins at `first` and ends before `end`."""

    first: int
    end: int
    base_offset: int
    next_offset: int
    attributes: int
    base_ms: int
    most_ms: int
    records: int
    epoch: int

    @property
    def is_control(self) -> bool:
        """Whether it holds a transaction's marker, no records."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_append_time(self) -> bool:
        """Whether all its records have the time at which the broker appended it."""
        return bool(self.attributes & _LOG_APPEND_TIME)


class BatchRecords(NamedTuple):
    """A batch, and where each of its records begins, int64 (r,)."""

    batch: RecordBatch
    starts: Integers


def end_of_batch(data: bytes, first: int) -> int | None:
    """Where the batch that begins at `first` ends; None if only its beginning was fetched, or nothing."""
    if len(data) - first <= _MAGIC_AT:
        return None
    end = first + _LENGTH.size + int(_LENGTH.unpack_from(data, first)[1])
    return end if first + _MAGIC_AT < end <= len(data) else None


def epoch_at(data: bytes, first: int) -> int:
    """Epoch of the leader that appended the batch that begins at `first`, whatever its format."""
    return int(_EPOCH.unpack_from(data, first + _LENGTH.size)[0]) if data[first + _MAGIC_AT] == 2 else -1


def plain_batch(data: bytes, first: int, end: int) -> RecordBatch | None:
    """The batch in these bytes; None if it is of an older format, compressed or damaged."""
    if end - first < _HEADER.size or data[first + _MAGIC_AT] != 2:
        return None
    base, _, epoch, _, crc, attributes, last, base_ms, most_ms, _, _, _, records = _HEADER.unpack_from(
        data, first
    )
    if attributes & _COMPRESSION or crc32c(memoryview(data)[first + _CHECKED_FROM : end]) != crc:
        return None
    return RecordBatch(first, end, base, base + last + 1, attributes, base_ms, most_ms, records, epoch)


def records_of(data: bytes, batch: RecordBatch) -> BatchRecords:
    """Where the records of a plain batch are; DamagedBatchError if they do not fill it."""
    octets = np.frombuffer(data, np.uint8)
    firsts: list[Integers] = []
    place, left, block = batch.first + _HEADER.size, batch.records, _FIRST_BLOCK
    while left > 0:
        if left >= _FIRST_BLOCK:
            found, place = _equal_records(data, octets, place, batch.end, min(left, block))
            firsts.append(found)
            left -= len(found)
        if left > 0 and (left < _FIRST_BLOCK or len(found) < block):
            found, place = _next_records(data, place, batch.end, min(left, _ALONE))
            firsts.append(found)
            left -= len(found)
            block = _FIRST_BLOCK
        else:
            block *= 2
    if place != batch.end or left < 0:
        raise DamagedBatchError
    return BatchRecords(batch, np.concatenate(firsts) if firsts else np.empty(0, np.int64))


def run_of(data: bytes, batches: Sequence[BatchRecords], offset: int) -> Run:
    """The records of consecutive batches of one epoch from an offset on; DamagedBatchError if one is damaged.

    Small batches are read together: each of these steps takes as long for ten records as for a thousand.
    """
    octets, numbers = np.frombuffer(data, np.uint8), [len(each.starts) for each in batches]
    starts = np.concatenate([each.starts for each in batches])
    sizes, bodies = _varints(octets, starts)
    ends = bodies + sizes
    deltas_ms, places = _varints(octets, bodies + 1)
    deltas, places = _varints(octets, places)
    key_lengths, places = _varints(octets, places)
    lengths, places = _varints(octets, places + np.maximum(key_lengths, 0))
    lengths = np.maximum(lengths, 0)
    if ((places + lengths >= ends) | (key_lengths > sizes) | (places < starts)).any():
        raise DamagedBatchError
    first_ms = [each.batch.most_ms if each.batch.is_append_time else each.batch.base_ms for each in batches]
    by_delta = np.array([not each.batch.is_append_time for each in batches]).repeat(numbers)
    offsets = np.array([each.batch.base_offset for each in batches], np.int64).repeat(numbers) + deltas
    append_ms = np.array(first_ms, np.int64).repeat(numbers) + np.where(by_delta, deltas_ms, 0)
    kept = slice(int(offsets.searchsorted(offset)), None)  # a fetch begins with a whole batch
    headers_from = (places + lengths)[kept]
    return Run(
        data,
        offsets[kept],
        append_ms[kept],
        places[kept],
        lengths[kept],
        lambda number: headers_at(data, int(headers_from[number])),
        batches[0].batch.epoch,
    )


def headers_at(data: bytes, place: int) -> Headers:
    """The first headers of a record, from where they begin; none if they cannot be read."""
    try:
        count, place = _varint(data, place)
        found: list[tuple[str, bytes | None]] = []
        for _ in range(min(count, MOST_HEADERS)):
            size, place = _varint(data, place)
            key, place = data[place : place + size].decode(), place + size
            size, place = _varint(data, place)
            found.append((key, data[place : place + size] if size >= 0 else None))
            place += max(size, 0)
    except (IndexError, UnicodeDecodeError):
        return ()
    return found


def _equal_records(data: bytes, octets: Bytes, place: int, end: int, most: int) -> tuple[Integers, int]:
    """Where the records from here on begin that are as long as the first, and where the next one does."""
    length, body = _varint(data, place)
    step = body - place + length
    most = min(most, (end - place) // step) if length > 0 else 0
    if not most:
        raise DamagedBatchError
    # If these bytes are equal at each step up to one, all records before it have this length.
    same = np.ones(most, np.bool_)
    for number in range(place, body):
        same &= octets[number : number + (most - 1) * step + 1 : step] == octets[number]
    found = most if same.all() else int(same.argmin())
    return place + step * np.arange(found), place + step * found


def _next_records(data: bytes, place: int, end: int, number: int) -> tuple[Integers, int]:
    """Where this many records begin, whatever their lengths, and where the next one does."""
    firsts = []
    for _ in range(number):
        firsts.append(place)
        length, body = _varint(data, place)
        place = body + length
        if not body <= place <= end:
            raise DamagedBatchError
    return np.array(firsts, np.int64), place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A zigzag varint, and the place behind it; IndexError or DamagedBatchError if it does not end."""
    value = shift = 0
    for number in range(place, place + _MOST_VARINT):
        octet = data[number]
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return (value >> 1) ^ -(value & 1), number + 1
        shift += 7
    raise DamagedBatchError


def _varints(octets: Bytes, places: Integers) -> tuple[Integers, Integers]:
    """Zigzag varints of at most 63 bits, and the places behind them."""
    octet = octets.take(places, mode="clip")
    value, places = (octet & 0x7F).astype(np.int64), places + 1
    more, shift = np.flatnonzero(octet >= 0x80), 7
    while len(more):
        if shift > 56:
            raise DamagedBatchError
        octet = octets.take(places[more], mode="clip")
        value[more] |= (octet & 0x7F).astype(np.int64) << shift
        places[more] += 1
        more, shift = more[octet >= 0x80], shift + 7
    return (value >> 1) ^ -(value & 1), places
