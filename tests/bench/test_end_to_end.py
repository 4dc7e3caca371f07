"""End-to-end measurements: the timed part of a log, the delay of an event, the check of peers' counts."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bench.aggregator.deployments import HEAD, RAPPOR_128
from bench.comparison.runners.peers.readers import aiokafka_read
from bench.comparison.runners.peers.readers.pack_bits import cohort_of, decode
from bench.comparison.runners.peers.readers.stretch import Stretch
from bench.comparison.streaming import visibility
from bench.comparison.streaming.full_log import FullLog
from bench.comparison.streaming.peer_readers import ReaderError, answer_in
from bench.comparison.streaming.speeds import READING, Size, Speed, missed, name_of
from bench.comparison.streaming.throughput import Reader, ReaderRun, speeds_of
from bench.comparison.streaming.visibility import Visibility, Window, quantile
from bench.comparison.streaming.workers import Moment, stretch
from deniable.aggregator.partition.consumer import FETCH_WAIT_MILLISECONDS
from deniable.aggregator.partition.faust_app import FETCH_BYTES
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.cluster.connection.probe import UnreachableError
from deniable.config.file import load
from deniable.protocol import wire
from tests.support.messages import PinMessages

SIZE = Size(1000, 10, 0.5, peers=("bytewax",), goal=6e6, collections=100)


@pytest.fixture
def log(tmp_path: Path) -> FullLog:
    """66 packs of two reports: cohorts 0 and 1 have two packs, the others one."""
    file = tmp_path / "deniable.yaml"
    head = HEAD.format(servers="127.0.0.1:9092", prefix="t-", partitions=4)
    file.write_text(head + RAPPOR_128.format(number=0))
    payload = bytes([0b101] + 15 * [0] + [0b100] + 14 * [0] + [0b1000_0000])
    return FullLog(load(file, environment={}), packs=66, reports=2, payload=payload)


def record(collection: str, window_start: int, *, reports: int, final: bool) -> EstimateRecord:
    return EstimateRecord(
        version=1,
        collection=collection,
        fingerprint="0",
        window_start=window_start,
        window_end=window_start + 2,
        revision=1,
        final=final,
        reports=reports,
        packs=1,
        rejected=0,
        mechanism="rappor",
        estimator="mle",
        epsilon=1.0,
        values=[],
        frequency=[],
        count=[],
        std_error=[],
        low=[],
        high=[],
        significant=[],
        omitted=0,
        other=None,
        diagnostics={},
    )


def test_event_is_visible_in_the_first_estimate_with_it() -> None:
    seen = Visibility()
    seen.note(Window("e1", 100), 101.0)
    seen.take(record("e1", 98, reports=1, final=False), 102.0, 3)  # of another window
    seen.take(record("e1", 100, reports=0, final=False), 102.5, 3)
    assert (seen.shown(), seen.final(), seen.missing()) == ([], [], 1)
    seen.take(record("e1", 100, reports=1, final=False), 103.0, 3)
    seen.take(record("e1", 100, reports=1, final=False), 104.0, 3)
    assert (seen.shown(), seen.final(), seen.missing()) == ([2.0], [], 1)
    seen.take(record("e1", 100, reports=1, final=True), 106.5, 3)
    seen.take(record("e1", 100, reports=1, final=True), 109.0, 3)
    assert (seen.shown(), seen.final(), seen.missing()) == ([2.0], [1.5], 0)


@pytest.mark.parametrize(("share", "expected"), [(0.01, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
def test_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    assert quantile([float(value) for value in range(100, 0, -1)], share) == expected


def test_workers_are_timed_while_all_of_them_count() -> None:
    moments = [
        Moment(0.0, (0, 0), 0.0, 0.0, 0.0),
        Moment(1.0, (50, 0), 0.0, 1.0, 0.5),
        Moment(1.5, (60, 10), 0.0, 1.5, 0.8),
        Moment(1.7, (900, 10), 0.0, 1.7, 0.9),  # counted while the second one joined
        Moment(2.0, (900, 20), 0.0, 2.0, 1.0),
        Moment(4.0, (1100, 80), 0.0, 5.0, 1.5),  # the first worker has 1,100 of 1,200, the second 80 of 150
        Moment(9.0, (1200, 150), 0.0, 9.0, 3.0),
    ]
    # The first worker from 1.7 to 4 s, the second from 2 s on.
    assert stretch(moments) == pytest.approx(((200 / 2.3 + 60 / 2) * 2.3, 2.3, 3.3, 0.6))


def test_reader_is_timed_up_to_nine_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    read = Stretch(100)
    for packs in (10, 0, 75, 10, 5):
        read.add(packs)
    read.print()
    answer = json.loads(capsys.readouterr().out)
    assert (read.packs, answer["packs"]) == (100, 85)
    assert answer["seconds"] > 0
    assert answer["cpu_seconds"] >= 0


def test_peers_decode_a_pack_correctly(log: FullLog) -> None:
    pack = wire.Pack(wire.RAPPOR_NUMBER, 7, 1, 86_400, 2, 128, bytes(16), log.payload)
    key, counts = decode(wire.encode(pack))
    assert cohort_of(key) == "7"
    assert {bit: int(counts[bit]) for bit in counts.nonzero()[0]} == {0: 1, 2: 2, 127: 1}


def test_correct_counts_are_accepted(log: FullLog) -> None:
    answer = {"packs": 60, "seconds": 2.0, "cpu_seconds": 1.0, "counts": log.counts()}
    assert log.counts()[1][:3] == [2, 0, 4]
    assert log.counts()[2][:3] == [1, 0, 2]
    assert answer_in(f"a warning\n{json.dumps(answer)}\n", log) == (60, 2.0, 1.0)


def test_failed_reader_has_a_row_with_the_reason() -> None:
    failed = Speed("bytewax", [], says="failed: not done in 60 s")
    row = failed.row(5e6)
    assert (row["reports/s"], row["one worker is, times"]) == ("", "")
    assert row["what else"] == "failed: not done in 60 s"
    (why,) = missed(SIZE, [failed])
    assert why == "not judged, since one worker counted nothing: failed: not done in 60 s"


def test_each_goal_may_be_missed() -> None:
    """Shares of reading alone, of one worker and of peers, and reports/s."""
    mine, alone = Speed(name_of(1), [5e6], 6e6, 0.5), Speed(READING, [1.1e7], 3e7)
    two, spread = Speed(name_of(2), [9e6], 8e6, 0.5), Speed(name_of(1, 100), [3.9e6], 4e6)
    assert missed(SIZE, [mine, two, spread, alone, Speed("bytewax", [4.5e6], 5e6)]) == [
        "one worker beside aiokafka, reading alone: 0.455 times, of 0.5 asked",
        "two workers beside one: 1.8 times, of 1.9 asked",
        "100 collections beside one: 0.78 times, of 0.8 asked",
        "one worker beside bytewax: 1.11 times, of 1.3 asked",
        "one worker: 5,000,000 reports/s, of 6,000,000 asked",
    ]
    assert missed(SIZE, [replace(mine, runs=[6e6]), alone]) == []
    row = alone.row(mine.median)
    assert (row["one worker is, times"], row["cores"]) == (pytest.approx(5 / 11), "0.37")


def run(speed: float) -> ReaderRun:
    return ReaderRun(speed, 2 * speed, seconds=4 - speed)


def test_readers_take_turns_and_failed_ones_keep_earlier_runs() -> None:
    order: list[str] = []

    def reader(name: str, fails_at: int) -> Reader:
        def read_once() -> ReaderRun:
            order.append(name)
            if order.count(name) == fails_at:
                raise ReaderError("it is gone")
            return run(order.count(name))

        return Reader(name, read_once, "does less")

    found = speeds_of([reader("a", 0), reader("b", 2)], 3)
    assert order == ["a", "b", "a", "b", "a"]
    assert found[0] == Speed("a", [1, 2, 3], 4, says="does less", seconds=1)
    assert found[1] == Speed("b", [1], 2, says="run 2 failed: it is gone", seconds=3)
    assert speeds_of([reader("c", 1)], 1) == [Speed("c", [], says="run 1 failed: it is gone")]


def test_plain_reader_fetches_like_our_worker() -> None:
    ours = (FETCH_BYTES, FETCH_WAIT_MILLISECONDS)
    assert ours == (aiokafka_read.FETCH_BYTES, aiokafka_read.FETCH_WAIT_MILLISECONDS)


def test_lost_broker_keeps_earlier_runs() -> None:
    def gone() -> ReaderRun:
        raise UnreachableError("no Kafka broker answers")

    found = speeds_of([Reader("a", lambda: run(1)), Reader("b", gone)], 1)
    assert [(each.runs, each.says) for each in found] == [
        ([1], ""),
        ([], "run 1 failed: no Kafka broker answers"),
    ]


def test_unreadable_estimates_fail_the_measurement(
    pin_messages: PinMessages, log: FullLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Consumer:
        def __init__(self, *_: object, **__: object) -> None:
            self.closed = False

        def poll(self, timeout_ms: int) -> object:
            raise ConnectionError("it hung up")

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(visibility, "KafkaConsumer", Consumer)
    watching = visibility.Watcher(log.configuration, {}, 3)
    watching.start()
    pin_messages({"estimates that cannot be read": watching.end})
    assert watching._consumer.closed


def test_messages(pin_messages: PinMessages, log: FullLog) -> None:
    seen = Visibility()
    seen.note(Window("e1", 100), 101.0)
    at_once = [Moment(1.0, (0,), 0.0, 1.0, 0.5), Moment(2.0, (60,), 0.0, 2.0, 1.0)]
    soon = [Moment(2.0 + 0.3 * step, (60 * step,), 0.0, 2.0, 1.0) for step in range(1, 4)]
    one = [Moment(1.0, (50, 0), 0.0, 1.0, 0.5), Moment(2.0, (60, 0), 0.0, 2.0, 1.0)]
    counts = log.counts()
    counts[3][0] += 1
    del counts[5]
    wrong = {"packs": 60, "seconds": 2.0, "cpu_seconds": 1.0, "counts": counts}
    pin_messages(
        {
            "two events of a window": partial(seen.note, Window("e1", 100), 101.5),
            "a quantile of no values": partial(quantile, [], 0.5),
            "a worker without a share of the log": partial(stretch, one),
            "a log counted at once": partial(stretch, at_once),
            "a log counted in 0.3 s": partial(stretch, soon),
            "wrong counts": partial(answer_in, json.dumps(wrong), log),
            "a reader without a result": partial(answer_in, "a warning", log),
            "a reader that reads at once": partial(
                answer_in, '{"packs": 0, "seconds": 0, "cpu_seconds": 0}', log
            ),
        }
    )
