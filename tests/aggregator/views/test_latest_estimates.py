"""LatestEstimates keeps the winning estimate of the newest window."""

import asyncio
import itertools
from contextlib import suppress
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from structlog.testing import capture_logs

from deniable.aggregator.records.estimate import SETTLE_SECONDS, EstimateRecord, encode_estimate
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.cluster.reading import consumer
from tests.support.aggregator.builders import FRUIT, NOWHERE, PLACE, T0, MemoryRecord


def estimate(
    name: str = "fruit", window: int = T0, revision: int = 1, *, final: bool = False
) -> EstimateRecord:
    return EstimateRecord(
        version=1,
        collection=name,
        fingerprint="0" * 16,
        window_start=window,
        window_end=window + 10,
        revision=revision,
        final=final,
        reports=10,
        packs=revision,
        rejected=0,
        mechanism="k-rr",
        estimator="mle",
        epsilon=1.0,
        values=["a"],
        frequency=[1.0],
        count=[10.0],
        std_error=[0.1],
        low=[0.9],
        high=[1.0],
        significant=[True],
        omitted=0,
        other=None,
        diagnostics={},
    )


def taken(latest: LatestEstimates, record: EstimateRecord) -> bool:
    """Whether this record is now the latest."""
    shown = latest.take(encode_estimate(record))
    assert shown in (None, record)
    assert (latest.newest[record.collection] == record) == (shown is not None)
    return shown is not None


def test_newest_window_wins_whatever_its_revision() -> None:
    latest = LatestEstimates()
    assert taken(latest, estimate(window=T0, revision=9, final=True))
    assert taken(latest, estimate(window=T0 + 10))
    assert not taken(latest, estimate(window=T0, revision=99, final=True))


def test_within_a_window_the_winning_estimate_is_shown() -> None:
    latest = LatestEstimates()
    assert taken(latest, estimate(revision=2))
    assert not taken(latest, estimate(revision=1, final=True))
    assert taken(latest, estimate(revision=2, final=True))
    assert not taken(latest, estimate(revision=2))
    assert taken(latest, estimate(revision=3))


def test_first_part_of_an_estimate_is_shown() -> None:
    latest, first = LatestEstimates(), replace(estimate(final=True), parts=3)
    assert taken(latest, first)
    for part in (2, 3):
        assert latest.take(encode_estimate(replace(first, part=part))) is None
    assert latest.newest == {"fruit": first}


def test_collections_are_independent() -> None:
    latest = LatestEstimates()
    assert taken(latest, estimate(FRUIT.name, T0 + 10))
    assert taken(latest, estimate(PLACE.name, T0))
    assert latest.newest.keys() == {"fruit", "place"}


@pytest.mark.parametrize("data", [b"", b'{"collection":"\xff"}', b'{"x":' + b"[" * 10**5, b'{"version":1}'])
def test_foreign_estimates_are_skipped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """One log line reports it, and later records are shown."""
    shown: list[EstimateRecord] = []
    first, second = estimate(), estimate(revision=2)
    partition = [encode_estimate(first), *[data] * 30, encode_estimate(second), None]
    with capture_logs() as lines:
        latest = followed(monkeypatch, LatestEstimates(), [partition], shown)
    assert (latest.newest, shown) == ({"fruit": second}, [first, second])
    assert lines == [
        {
            "event": "skipped foreign records",
            "log_level": "warning",
            "topic": "estimates",
            "partition": 1,
            "records": 31,
            "first_offset": 8,
        }
    ]


def test_flood_logs_one_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as lines:
        followed(monkeypatch, LatestEstimates(), [[b"no estimate"]] * 5, [])
    assert [line["records"] for line in lines] == [1]


def followed(
    monkeypatch: pytest.MonkeyPatch,
    latest: LatestEstimates,
    batches: list[list[bytes | None]],
    shown: list[EstimateRecord],
) -> LatestEstimates:
    """Follow a topic whose partition 1 returns these batches; the first record has offset 7."""
    source, waiting, offsets = TopicPartition("estimates", 1), list(batches), itertools.count(7)

    class Consumer:
        def __init__(self, **_: object) -> None:
            self.start = self.stop = lambda: asyncio.sleep(0)
            self.assign = self.seek = lambda *_: None
            self._client = SimpleNamespace()

        async def end_offsets(self, sources: list[TopicPartition]) -> dict[TopicPartition, int]:
            return dict.fromkeys(sources, 7)

        async def getmany(
            self, timeout_ms: int, max_records: int
        ) -> dict[TopicPartition, list[MemoryRecord]]:
            if not waiting:
                raise asyncio.CancelledError
            return {source: [MemoryRecord(next(offsets), 0, None, value) for value in waiting.pop(0)]}

    monkeypatch.setattr(consumer, "AIOKafkaConsumer", Consumer)
    with suppress(asyncio.CancelledError):
        asyncio.run(latest.follow(NOWHERE, "estimates", 2, shown.append))
    return latest


@given(st.permutations([(window, revision) for window in (T0, T0 + 10) for revision in (1, 2, 3)]))
def test_order_of_arrival_does_not_matter(order: list[tuple[int, int]]) -> None:
    latest = LatestEstimates()
    for window, revision in order:
        latest.take(encode_estimate(estimate(window=window, revision=revision)))
    assert latest.newest == {"fruit": estimate(window=T0 + 10, revision=3)}


@pytest.mark.parametrize(("final", "windows"), [(False, 1), (True, 2)])
def test_estimate_is_stale_when_its_successor_is_overdue(final: bool, windows: int) -> None:
    """After a provisional estimate, the final one is due; after a final one, that of the next window."""
    due = T0 + windows * FRUIT.window_seconds + FRUIT.grace_seconds + SETTLE_SECONDS
    latest = LatestEstimates()
    latest.take(encode_estimate(estimate(final=final)))
    assert latest.stale([FRUIT, PLACE], due) == {}
    assert latest.stale([FRUIT, PLACE], due + 0.1) == {"fruit": due}
    latest.take(encode_estimate(estimate(window=T0 + windows * FRUIT.window_seconds)))
    assert latest.stale([FRUIT, PLACE], due + 0.1) == {}


def test_event_loop_step_decodes_one_record() -> None:
    """Decoding one with 2,000 values takes milliseconds, which delays heartbeats and counting."""

    async def run() -> list[int]:
        latest, steps = LatestEstimates(), [0]
        estimates = [estimate(revision=revision) for revision in range(1, 21)]
        partition = [MemoryRecord(i, 0, None, encode_estimate(r)) for i, r in enumerate(estimates)]

        def show(_: EstimateRecord) -> None:
            steps[-1] += 1

        source = TopicPartition("estimates", 0)
        taking = asyncio.create_task(latest.take_all(source, partition, show))
        while not taking.done():
            steps.append(0)
            await asyncio.sleep(0)
        return steps

    steps = asyncio.run(run())
    assert (max(steps), sum(steps)) == (1, 20)
