"""What was published before a ledger was lost, and stands: a rebuild publishes it no second time.

Rule: found by the identity of each record, never by how far a ledger had come. So it is known even if Kafka
has forgotten all positions, or an earlier rebuild was interrupted.
"""

from collections.abc import Iterable, Mapping
from contextlib import aclosing

import msgspec

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.history.window_reader import windows_since
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.row_values import Published, RowError
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.maintenance.ledger_reader import reader_of
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.final_window import decode_page
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS, records_since


class _Rejected(msgspec.Struct):
    partition: int
    offset: int


class RejectedOffsets:
    """Which records of one partition of `reports` are in `rejected`: one bit for each offset.

    Parameters
    ----------
    start, end : offsets of the log, end exclusive. Others are ignored.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._bits = bytearray((end - start + 7) // 8)

    def add(self, offset: int) -> None:
        """Note a rejected record."""
        if self._start <= offset < self._end:
            byte, bit = divmod(offset - self._start, 8)
            self._bits[byte] |= 1 << bit

    def __contains__(self, offset: int) -> bool:
        byte, bit = divmod(offset - self._start, 8)
        return self._start <= offset < self._end and bool(self._bits[byte] >> bit & 1)


async def rejected_offsets(deployment: Deployment, sources: Iterable[int]) -> dict[int, RejectedOffsets]:
    """Read `rejected` once for these partitions of `reports`, skipping records of other programs.

    Raises
    ------
    KafkaError; TimeoutError.
    """
    topics, found = deployment.topics, dict[int, RejectedOffsets]()
    for source in sources:
        async with reader_of(deployment, source) as reader:
            found[source] = RejectedOffsets(await reader.start_offset(), await reader.end_offset())
    decoder = msgspec.json.Decoder(_Rejected)
    every = range(topics.partitions)
    async with aclosing(records_since(deployment.cluster, topics.rejected, every, 0)) as records:
        async for _, record in records:
            try:
                rejected = decoder.decode(record.value or b"")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if rejected.partition in found:
                found[rejected.partition].add(rejected.offset)
    return found


async def standing_notes(
    deployment: Deployment, home: int, terms: Mapping[int, Terms], closed_until_ms: int
) -> dict[Window, Published]:
    """What the owner of a partition has published of windows whose counts are still kept.

    Memory: one entry per such window of the collections that it estimates.

    Parameters
    ----------
    deployment : to read.
    home : the partition.
    terms : of its rebuilt ledger, by fingerprint.
    closed_until_ms : of that ledger, unix milliseconds.

    Raises
    ------
    KafkaError; TimeoutError.
    """
    mine = {each: terms[each] for each in terms if deployment.topics.counts_partition(each) == home}
    if not mine:
        return {}
    first = min(closed_until_ms // 1000 - _longest_life(each) for each in mine.values())
    notes = await _of_estimates(deployment, mine, first)
    for window, note in (await _of_final_counts(deployment, mine, first)).items():
        notes.setdefault(window, note)  # too few reports for an estimate
    return {
        window: note
        for window, note in notes.items()
        if closed_until_ms <= mine[window[0]].dies_at(window[1]) * 1000
    }


def _longest_life(terms: Terms) -> int:
    """Most seconds from the start of a window to the deletion of its counts."""
    return terms.window_seconds + max(span.grace_seconds + span.retention_seconds for span in terms.spans)


async def _of_estimates(
    deployment: Deployment, mine: Mapping[int, Terms], first: int
) -> dict[Window, Published]:
    newest: dict[Window, Published] = {}
    topics, since_ms = deployment.topics, first * 1000 - CLOCKS_MILLISECONDS
    found = records_since(deployment.cluster, topics.estimates, range(topics.partitions), since_ms)
    async with aclosing(found) as records:
        async for _, record in records:
            try:
                estimate = decode_estimate(record.value or b"")
                window = (int(estimate.fingerprint, 16), estimate.window_start)
            except (msgspec.DecodeError, ValueError):
                continue  # of another program or version
            note = Published(estimate.revision, estimate.final, estimate.revision - estimate.packs)
            if window[0] in mine and 0 <= note.ahead <= note.revision and note >= newest.get(window, note):
                newest[window] = note
    return newest


async def _of_final_counts(
    deployment: Deployment, mine: Mapping[int, Terms], first: int
) -> dict[Window, Published]:
    last: dict[Window, Published] = {}
    async with aclosing(windows_since(deployment.cluster, deployment.topics, first)) as records:
        async for _, record in records:
            try:
                page = decode_page(record.key or b"", record.value or b"")
            except RowError:
                continue  # of another program or version
            if page.fingerprint in mine:
                last[page.fingerprint, page.window_start] = Published(page.packs, final=True)
    return last
