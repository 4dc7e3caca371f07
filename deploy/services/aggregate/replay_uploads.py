"""`deniable replay --uploads`: recount `uploads`, and compare with what workers count of it in `reports`."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import click
from kafka import TopicPartition

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger.acceptance import Rejection
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.terms import terms_at
from deniable.aggregator.maintenance.ledger_reader import ledger_rows, reader_of, terms_in
from deniable.aggregator.maintenance.replay import ReplayError
from deniable.cluster.connection.coordinator import patiently
from deniable.cluster.reading.partition_reader import RowReader
from deniable.cluster.topics.checks import connected
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.services.relay.upload_recount import Missing, PackJudge, UploadRecount, recount_uploads
from deniable.relay.keys import RelayKeys

POLL_SECONDS = 0.5


def replay_uploads(
    deployment: Deployment, keys: RelayKeys, wait_seconds: float, tell: Callable[[str], None]
) -> int:
    """Recount and compare; print what was found; return the difference, in reports.

    `tell` is called with the present step, several times a second while it waits.

    Raises
    ------
    ReplayError if the relays do not finish in time, or nothing can be compared; ControlError with a wrong
    secret.
    """
    tell(f"waiting until relays have packed the uploads, {wait_seconds:.0f} s at most")
    ends = run_until_signalled(_ends(deployment))
    positions = _wait_until_relayed(deployment, ends, wait_seconds, tell)
    tell("recounting the uploads")
    recount = run_until_signalled(_recount(deployment, keys, positions))
    judge = run_until_signalled(_judged(deployment, recount))
    missing = judge.missing()
    for line in _lines(deployment, recount, judge, missing):
        click.echo(line, err=True)
    if recount.without_settings and not recount.packs:
        raise ReplayError(
            f"nothing to compare: partitions {_listed(recount.without_settings)} of "
            f"{deployment.topics.uploads} no longer have the settings of a relay; start one"
        )
    return missing.difference


async def _ends(deployment: Deployment) -> dict[int, int]:
    ends = {}
    for partition in range(deployment.topics.partitions):
        async with _reader(deployment, partition) as reader:
            ends[partition] = await reader.end_offset()
    return ends


def _wait_until_relayed(
    deployment: Deployment, ends: dict[int, int], wait_seconds: float, tell: Callable[[str], None]
) -> dict[int, int]:
    """Return the relays' positions once they are at these ends."""
    deadline = time.monotonic() + wait_seconds
    while True:
        positions = _positions(deployment)
        behind = [each for each, end in ends.items() if end and positions.get(each, 0) < end]
        if not behind:
            return positions
        state = f"partition {behind[0]} is at offset {positions.get(behind[0], 0)} of {ends[behind[0]]}"
        if time.monotonic() > deadline:
            raise ReplayError(
                f"uploads are not relayed within {wait_seconds:.0f} s: {state}; is a relay running and ready?"
            )
        tell(f"waiting for relays: {state}")
        time.sleep(POLL_SECONDS)


def _positions(deployment: Deployment) -> dict[int, int]:
    topics = deployment.topics
    with connected(deployment.cluster) as admin:
        offsets = patiently(lambda: admin.list_group_offsets(topics.relay_group))[topics.relay_group]
    return {
        source.partition: found.offset
        for source, found in offsets.items()
        if isinstance(source, TopicPartition) and source.topic == topics.uploads and found.offset >= 0
    }


async def _recount(deployment: Deployment, keys: RelayKeys, positions: dict[int, int]) -> UploadRecount:
    found = UploadRecount()
    for partition in range(deployment.topics.partitions):
        async with _reader(deployment, partition) as reader:
            first = await reader.start_offset()
            records = [record async for record in reader.until_end()]
        found.add(recount_uploads(partition, keys, first, records, positions.get(partition, 0)))
    return found


def _reader(deployment: Deployment, partition: int) -> RowReader:
    return RowReader(deployment.cluster, deployment.topics.uploads, partition, committed=False)


async def _judged(deployment: Deployment, recount: UploadRecount) -> PackJudge:
    """Fold `reports` as workers do, under the terms of their ledgers."""
    judge = PackJudge(recount)
    for source in range(deployment.topics.partitions):
        terms = terms_in(await ledger_rows(deployment, source))
        async with reader_of(deployment, source) as reader:
            terms = terms_at(terms, await reader.start_offset())
            ledger = Ledger(source, deployment.topics.partitions, terms)
            async for record in reader.until_end():
                value = record.value or b""
                outcome = ledger.apply(record.offset, record.timestamp, value)
                if isinstance(outcome, Rejection):
                    judge.rejected(value, outcome.reason)
                elif outcome is not None:
                    judge.counted(outcome, value)
    return judge


def _lines(
    deployment: Deployment, recount: UploadRecount, judge: PackJudge, missing: Missing
) -> Iterator[str]:
    rejected = ", ".join(f"{reason} {count:,}" for reason, count in sorted(recount.rejected.items()) if count)
    yield (
        f"uploads: {_number(recount.reports, 'report')} accepted, {recount.rejected.total():,} rejected"
        f"{f' ({rejected})' if rejected else ''}"
    )
    yield f"packs: {len(recount.packs):,} made of them, with {_number(missing.expected.total(), 'report')}"
    if held := recount.held.total():
        of_windows = f"{_number(held, 'report')} of {_number(len(recount.held), 'window')}"
        yield f"{of_windows} {_are(held)} held back until enough come, or their end"
    if others := judge.other_reports:
        verb = "comes" if others == 1 else "come"
        yield f"{_number(others, 'counted report')} {verb} from others than relays, or from deleted uploads"
    if recount.whole_after_ms >= 0:
        until = _time(recount.whole_after_ms // 1000)
        yield f"windows that start by {until} cannot be judged: part of their uploads is deleted"
    for partition in recount.without_settings:
        yield f"partition {partition} cannot be judged: no settings of a relay are left in it"
    for window in sorted(missing.reports):
        reasons = missing.reports[window]
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
        yield (
            f"{_name(deployment, window)}, window {_time(window[1])}: {reasons.total():,} of "
            f"{_number(missing.expected[window], 'report')} {_are(reasons.total())} not counted ({why})"
        )


def _number(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' * (count != 1)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _name(deployment: Deployment, window: tuple[int, int]) -> str:
    collection = deployment.collections.get(window[0])
    return collection.name if collection else f"{window[0]:016x}"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
