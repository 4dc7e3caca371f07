"""What a fetch holds is read into runs as aiokafka reads it into records, whatever is in it."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger.outcomes import MOST_HEADERS
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.fetching import run_fetching
from deniable.aggregator.partition.fetching.run_fetching import PartitionRuns

SOURCE = TopicPartition("reports", 3)
PLAIN, GZIP = 0, 1
LOG_APPEND_TIME, CONTROL = 0x08, 0x20

keys = st.none() | st.binary(max_size=70)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
records = st.tuples(keys, st.none() | st.binary(max_size=200), headers)


def batch_of(
    base: int,
    given: Sequence[tuple[Any, Any, Any]],
    *,
    attributes: int = 0,
    compression: int = PLAIN,
    most_ms: int = 10**12,
    steps: Sequence[int] = (1,),
    missing: int = 0,
) -> bytes:
    """A batch as a broker stores it, and compacts it.

    Parameters
    ----------
    steps : of the offsets, over and over; more than 1 if compaction has removed records before this one.
    missing : how many it has removed at the end.
    """
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, 0, 10**7)
    offset = -1
    for number, (key, value, headed) in enumerate(given):
        offset += steps[number % len(steps)]
        builder.append(offset, most_ms - 1000 + 7 * number, key, value, headed)
    data = builder.build()
    (found,) = struct.unpack_from(">h", data, 21)
    struct.pack_into(">qi", data, 0, base, len(data) - 12)
    struct.pack_into(">hi", data, 21, found | attributes, offset + missing)
    struct.pack_into(">q", data, 35, most_ms)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


@st.composite
def fetches(draw: st.DrawFn) -> bytes:
    """Batches of few or many records, equal or not, also compacted and compressed ones, and markers."""
    data, base = b"", draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 5))):
        base += draw(st.sampled_from([0, 0, 1, 5]))
        given = draw(st.lists(records, min_size=1, max_size=8))
        given *= draw(st.sampled_from([1, 1, 9, 40]))
        attributes = draw(st.sampled_from([0, LOG_APPEND_TIME, LOG_APPEND_TIME, CONTROL]))
        if attributes == CONTROL:
            given = [(b"\0\0\0\1", b"\0\0\0\0\0\0", [])]
        steps = draw(st.just([1]) | st.lists(st.sampled_from([1, 1, 2, 5, 100]), min_size=1, max_size=8))
        missing = draw(st.sampled_from([0, 0, 2]))
        compression = PLAIN if attributes == CONTROL else draw(st.sampled_from([PLAIN, PLAIN, GZIP]))
        batch = batch_of(
            base, given, attributes=attributes, compression=compression, steps=steps, missing=missing
        )
        data += batch
        base += int.from_bytes(batch[23:27], "big") + 1
    return data[: len(data) - draw(st.sampled_from([0, 0, 1, 30]))]


def by_aiokafka(data: bytes, offset: int) -> tuple[list[Any], int]:
    read = PartitionRecords(SOURCE, MemoryRecords(data), [], offset, None, None, True, 0)
    found = [(each.offset, each.timestamp, each.value or b"", list(each.headers)) for each in read]
    return found, read.next_fetch_offset


def listed(runs: Sequence[Run]) -> list[Any]:
    return [
        (
            int(run.offsets[number]),
            int(run.append_ms[number]),
            run.record(number),
            list(run.headers_of(number)),
        )
        for run in runs
        for number in range(len(run))
    ]


@pytest.mark.all
@given(fetches(), st.integers(0, 12) | st.integers(0, 1000), st.sampled_from([1, 50, 8192]))
def test_runs_are_what_aiokafka_reads(data: bytes, skipped: int, run_records: int) -> None:
    """From any offset of the first batch on, as brokers answer, and for any size of runs."""
    base, last = (int.from_bytes(data[:8], "big"), int.from_bytes(data[23:27], "big")) if data else (0, 0)
    offset = base + min(skipped, last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_fetching, "RUN_RECORDS", run_records)
        runs = PartitionRuns(SOURCE, data, offset)
        found = listed(list(runs))
    assert (found, runs.next_fetch_offset) == by_aiokafka(data, offset)


def test_position_after_a_run_is_the_end_of_its_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aiokafka stores it when a fetch hands over some of its runs only."""
    monkeypatch.setattr(run_fetching, "RUN_RECORDS", 2)
    data = b"".join(batch_of(base, [(None, b"pack", [])] * 2, missing=1) for base in (0, 3, 6))
    runs = PartitionRuns(SOURCE, data, 0)
    positions = [(run.offsets.tolist(), runs.next_fetch_offset) for run in runs]
    assert positions == [([0, 1], 3), ([3, 4], 6), ([6, 7], 9)]


@pytest.mark.parametrize("place", [17, 25, 62, -1])
def test_damaged_batch_is_no_run(place: int) -> None:
    """Those before it are handed over; the fetcher fetches it again."""
    data = bytearray(batch_of(0, [(None, b"pack", [])]) * 2)
    half = len(data) // 2
    data[place if place < 0 else half + place] ^= 1
    runs = PartitionRuns(SOURCE, bytes(data), 0)
    assert next(runs).record(0) == b"pack"
    with pytest.raises(CorruptRecordException, match="CRC"):
        next(runs)


@pytest.mark.slow
@given(st.binary(min_size=1, max_size=60), st.integers(0, 5))
def test_right_checksum_of_nonsense_ends_as_with_aiokafka(body: bytes, count: int) -> None:
    """A broker would not store it; whoever could make it do so must not stop a worker in another way."""
    data = bytearray(batch_of(0, [(None, b"pack", [])])[:61] + body)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))

    def outcome(read: Any) -> Any:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - whatever aiokafka raises
            return type(error)

    expected = outcome(lambda: by_aiokafka(bytes(data), 0)[0])
    found = outcome(lambda: listed(list(PartitionRuns(SOURCE, bytes(data), 0))))
    # Headers alone may be damaged: they explain rejections, and are read for those only.
    assert found == expected or (isinstance(found, list) and isinstance(expected, type))


def test_no_more_headers_are_read_than_are_looked_at() -> None:
    given = [(f"h{number}", b"x") for number in range(MOST_HEADERS + 5)]
    (run,) = PartitionRuns(SOURCE, batch_of(0, [(None, b"pack", given)]), 0)
    assert list(run.headers_of(0)) == given[:MOST_HEADERS]
