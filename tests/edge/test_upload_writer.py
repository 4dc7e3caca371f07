"""The upload writer over Kafka in memory: frames, outages, deadlines, the queue's bound."""

import asyncio
import os
import time
from functools import partial

import pytest
from aiokafka.errors import NotEnoughReplicasError, NotLeaderForPartitionError
from structlog.testing import capture_logs

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage
from deniable.edge.metrics.counters import EdgeCounters
from deniable.edge.sending import upload_writer
from deniable.edge.sending.lanes import MOST_FRAME_BYTES, Lane
from deniable.edge.sending.upload_writer import AWAY, FULL, GAVE_UP, NOT_BEGUN, UploadWriter
from deniable.protocol.uploads.frame import MAX_UPLOADS, decode_frame, encode_frame
from deniable.protocol.wire import GROUP_REASONS as REASONS
from deniable.protocol.wire import MAX_RECORD_BYTES, partition_of
from tests.support.edge.fake_session import FakeKafka

PARTITIONS = 3


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Times of a test instead of seconds."""
    times = {"WAIT_SECONDS": 0.6, "TROUBLE_SECONDS": 0.2, "LOST_SECONDS": 0.3, "TICK_SECONDS": 0.02}
    times |= {"BEGIN_SECONDS": 0.05, "RETRIES": (0.02, 0.05), "RECONNECTS": (0.02, 0.04, 0.08)}
    for name, value in times.items():
        monkeypatch.setattr(upload_writer, name, value)


class Waiting:
    """An upload that waits."""

    def __init__(self, upload, done):
        self.upload, self.done, self.deadline = upload, done, 0.0


class Scene:
    """A writer, and what became of the uploads put into it."""

    def __init__(self):
        self.kafka = FakeKafka()
        self.counters = EdgeCounters(REASONS)
        self.writer = UploadWriter(
            self.kafka.open, PARTITIONS, self.counters, Outage(Cluster("127.0.0.1:1"), "uploads wait")
        )
        self.writer.start()
        self.outcomes = {}

    def put(self, upload_id=None, body=None):
        """Put an upload in, unless it is refused; return its id."""
        upload_id = upload_id or os.urandom(16)
        if why := self.writer.put(upload_id, Waiting(body or upload_id, partial(self._done, upload_id))):
            self.outcomes[upload_id] = f"refused: {why}"
        return upload_id

    def _done(self, upload_id, why):
        assert upload_id not in self.outcomes, "done twice"
        self.outcomes[upload_id] = why

    async def until(self, condition, seconds=60.0):
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, (self.outcomes, self.writer.reasons())
            await asyncio.sleep(0.01)

    async def ready(self):
        await self.until(lambda: not self.writer.reasons())


def run(scenario):
    async def whole():
        scene = Scene()
        try:
            await scenario(scene)
        finally:
            await scene.writer.close(1.0)

    asyncio.run(whole())


def test_uploads_that_come_while_a_frame_is_out_share_the_next_one():
    async def scenario(scene):
        await scene.ready()
        scene.kafka.gate.clear()
        first = scene.put()
        await asyncio.sleep(0.05)
        others = [scene.put() for _ in range(50)]
        await asyncio.sleep(0.05)
        assert scene.kafka.in_flight == 1
        scene.kafka.gate.set()
        await scene.until(lambda: len(scene.outcomes) == 51)
        assert set(scene.outcomes.values()) == {""}
        assert scene.kafka.most_in_flight == 1
        assert set(scene.kafka.uploads()) == {first, *others}
        assert len(scene.kafka.records) <= 1 + PARTITIONS
        for partition, record in scene.kafka.records:
            assert {partition_of(bytes(each), PARTITIONS) for each in decode_frame(record)} == {partition}
        assert scene.counters.frames == len(scene.kafka.records)
        await scene.until(lambda: scene.counters.queue_bytes == 0)

    run(scenario)


def test_nothing_is_taken_before_a_relay_has_begun():
    async def scenario(scene):
        scene.kafka.has_relay = False
        await scene.until(lambda: scene.writer.reasons() == [NOT_BEGUN])
        assert scene.outcomes[scene.put()] == f"refused: {NOT_BEGUN}"
        assert "no relay has begun on this topic yet" in NOT_BEGUN
        scene.kafka.has_relay = True
        await scene.ready()
        upload_id = scene.put()
        await scene.until(lambda: scene.outcomes.get(upload_id) == "")

    run(scenario)


@pytest.mark.slow
def test_outage_refuses_after_a_moment_and_ends_by_itself():
    """Waiting uploads are given up in time, new ones refused at once; few attempts to connect are made."""

    async def scenario(scene):
        await scene.ready()
        scene.kafka.gate.clear()
        in_flight = scene.put()
        await asyncio.sleep(0.05)
        scene.kafka.is_away = True
        waiting = scene.put()
        scene.kafka.gate.set()
        await scene.until(lambda: {in_flight, waiting} <= scene.outcomes.keys())
        assert (scene.outcomes[in_flight], scene.outcomes[waiting]) == (GAVE_UP, GAVE_UP)
        await scene.until(lambda: "10.9.8.7" in str(scene.writer.reasons()))
        refused = [scene.put() for _ in range(100)]
        assert {scene.outcomes[each] for each in refused} == {f"refused: {AWAY}"}  # no address of ours
        assert scene.counters.is_kafka_away
        opened = scene.kafka.opened
        await asyncio.sleep(1.0)
        assert scene.kafka.opened - opened <= 26  # of at least 40 ms each
        scene.kafka.is_away = False
        await scene.ready()
        upload_id = scene.put()
        await scene.until(lambda: scene.outcomes.get(upload_id) == "")
        await scene.until(lambda: not scene.counters.is_kafka_away)

    run(scenario)


@pytest.mark.slow
def test_short_outage_loses_nothing_and_answers_everything():
    async def scenario(scene):
        await scene.ready()
        ids = []
        for turn in range(60):
            ids += [scene.put() for _ in range(5)]
            scene.kafka.is_away = 20 <= turn < 30
            await asyncio.sleep(0.01)
        await scene.until(lambda: len(scene.outcomes) == len(ids))
        written = set(scene.kafka.uploads())
        assert all(each in written for each, why in scene.outcomes.items() if why == "")
        assert sum(why == "" for why in scene.outcomes.values()) > 200

    run(scenario)


def test_partition_without_a_leader_stops_no_other():
    async def scenario(scene):
        await scene.ready()
        scene.kafka.failing = {1: NotLeaderForPartitionError()}
        ids = [scene.put() for _ in range(60)]
        others = [each for each in ids if partition_of(each, PARTITIONS) != 1]
        await scene.until(lambda: all(scene.outcomes.get(each) == "" for each in others))
        assert 0 < len(others) < len(ids)
        scene.kafka.failing = {}
        await scene.until(lambda: set(scene.outcomes.values()) == {""} and len(scene.outcomes) == len(ids))
        assert scene.counters.frame_failures >= 1

    run(scenario)


@pytest.mark.slow
def test_too_few_replicas_are_one_outage_though_sessions_open():
    """Only an acknowledgement ends it: every other question is answered meanwhile."""

    async def scenario(scene):
        await scene.ready()
        scene.kafka.failing = dict.fromkeys(range(PARTITIONS), NotEnoughReplicasError())
        for _ in range(50):
            scene.put()
            await asyncio.sleep(0.02)
            scene.kafka.is_away = not scene.outcomes  # at first, so that the session opens again, too
        scene.kafka.failing = {}
        scene.put()
        await scene.until(lambda: lines[-1]["log_level"] == "info")

    with capture_logs() as lines:
        run(scenario)
    events = [each["event"].partition(";")[0] for each in lines]
    assert events == ["uploads are taken", "Kafka cannot be used", "Kafka can be used again"]


def test_queue_is_bounded(monkeypatch):
    async def scenario(scene):
        monkeypatch.setattr(upload_writer, "QUEUE_BYTES", 100_000)
        await scene.ready()
        scene.kafka.gate.clear()
        ids = [scene.put(body=bytes(10_000)) for _ in range(20)]
        refused = [each for each in ids if each in scene.outcomes]
        assert len(refused) == 10
        assert {scene.outcomes[each] for each in refused} == {f"refused: {FULL}"}
        scene.kafka.gate.set()
        await scene.until(lambda: len(scene.outcomes) == 20 and scene.counters.queue_bytes == 0)

    run(scenario)


@pytest.mark.slow
def test_close_waits_for_the_queue_then_answers_the_rest():
    async def scenario(scene):
        await scene.ready()
        scene.kafka.gate.clear()
        stuck = scene.put()
        await asyncio.sleep(0.05)
        waiting = scene.put()
        await scene.writer.close(0.1)
        assert (scene.outcomes[stuck], scene.outcomes[waiting]) == (GAVE_UP, GAVE_UP)

    run(scenario)


def waiting(size):
    return Waiting(bytes(size), None)


@pytest.mark.parametrize(("size", "number"), [(50, MAX_UPLOADS), (65_536, MOST_FRAME_BYTES // 65_536)])
def test_frame_has_at_most_so_many_uploads_and_bytes(size, number):
    lane = Lane(0)
    for _ in range(300):
        lane.put(waiting(size))
    taken = lane.take()
    assert len(taken) == number
    assert len(encode_frame([each.upload for each in taken])) <= MAX_RECORD_BYTES
    assert len(lane) == 300 - number


def test_failed_frame_goes_back_to_its_place():
    lane = Lane(0)
    uploads = [waiting(size) for size in range(1, 400)]
    for each in uploads:
        lane.put(each)
    lane.put_back(lane.take())
    assert lane.take() + lane.take() == uploads
