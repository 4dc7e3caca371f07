"""Writes uploads to Kafka, as many as wait for a partition in one frame, and answers for every one.

Rule 1: a frame leaves as soon as the one before it has been acknowledged; nothing waits for a timer. Under
load, frames fill up by themselves; without, an upload leaves alone.
Rule 2: an upload is done once: when all replicas in sync have it, or when it has waited WAIT_SECONDS. In the
second case Kafka may have it nevertheless. The device then sends it again, and relays count its id once.
Rule 3: while a partition is known not to take uploads, new ones are refused at once. One attempt at a time,
at growing distances, finds out when it takes them again; so an outage brings no storm.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from aiokafka.errors import LeaderNotAvailableError, NodeNotReadyError, RequestTimedOutError

from deniable.cluster.connection.outage import Outage, is_outage
from deniable.edge.lasting_tasks import LastingTasks
from deniable.edge.metrics.counters import EdgeCounters
from deniable.edge.sending.kafka_session import FAILURES, KafkaSession, SessionError, cause
from deniable.edge.sending.lanes import Lane, WaitingUpload
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.wire import partition_of

WAIT_SECONDS = 3.0
TROUBLE_SECONDS = 1.0  # a new leader is usually elected sooner
LOST_SECONDS = 2.0  # all partitions in trouble for so long: connect anew
TICK_SECONDS = 0.25
BEGIN_SECONDS = 1.0
RETRIES = (0.1, 0.2, 0.4, 0.8, 1.0)
RECONNECTS = (0.25, 0.5, 1.0, 2.0, 4.0, 5.0)

QUEUE_BYTES = 32 * 2**20
UPLOAD_OVERHEAD_BYTES = 512  # of a waiting upload's objects
REQUEST_BYTES = 8 * 2**20

STARTING = "Kafka has not answered yet"
NOT_BEGUN = "no relay has begun on this topic yet: start deniable relay"
FULL = "the queue of uploads is full"
AWAY = "Kafka takes no uploads now"
SESSION = "session"  # beside partitions, what an outage may concern
GAVE_UP = "Kafka did not take it in time"

_log = structlog.get_logger()


class UploadWriter:
    """The queue of uploads, and the task that keeps a session with Kafka.

    Parameters
    ----------
    open_session : connects; SessionError if that fails now.
    partitions : of the topic.
    counters : of this edge.
    outage : says once that Kafka takes no uploads, and once that it does again.

    Attributes
    ----------
    tasks : of the writer, and of whoever wants to run as long.
    """

    def __init__(
        self,
        open_session: Callable[[], Awaitable[KafkaSession]],
        partitions: int,
        counters: EdgeCounters,
        outage: Outage,
    ) -> None:
        self._open_session = open_session
        self._lanes = [Lane(each) for each in range(partitions)]
        self._counters = counters
        self._outage = outage
        self._session: KafkaSession | None = None
        self._reason = STARTING  # why nothing is taken at all; empty if uploads are taken
        self._ready: dict[Lane, None] = {}  # an ordered set of lanes with uploads
        self._busy: set[int] = set()  # nodes with a request in flight
        self._is_flush_due = False
        self._bytes = 0
        self._loop = asyncio.get_running_loop()
        self.tasks = LastingTasks()

    def start(self) -> None:
        """Connect, and take uploads from then on; until then all are refused."""
        self.tasks.start(self._keep(), "the connection to Kafka")
        self.tasks.start(self._tick(), "the watch over waiting uploads")

    def put(self, upload_id: bytes, waiting: WaitingUpload) -> str:
        """Queue an upload and set its deadline; return an empty text, or why it is refused.

        Unless it is refused, it is done once, later. Reasons are for devices, and hold no names of ours.

        Parameters
        ----------
        upload_id : decides the partition.
        waiting : the upload.
        """
        if self._reason:
            return NOT_BEGUN if self._reason == NOT_BEGUN else AWAY
        if self._bytes > QUEUE_BYTES:
            return FULL
        lane = self._lanes[partition_of(upload_id, len(self._lanes))]
        if lane.trouble and self._is_refused(lane):
            return AWAY
        waiting.deadline = self._loop.time() + WAIT_SECONDS
        lane.put(waiting)
        self._ready[lane] = None
        self._bytes += len(waiting.upload) + UPLOAD_OVERHEAD_BYTES
        if not self._is_flush_due:
            self._flush_soon()
        return ""

    def reasons(self) -> list[str]:
        """Return why uploads are refused, of some partitions or of all; empty if they are not."""
        if self._reason:
            return [self._reason]
        by_trouble: dict[str, list[str]] = {}
        for lane in self._lanes:
            if lane.trouble and self._is_refused(lane):
                by_trouble.setdefault(cause(lane.trouble), []).append(str(lane.partition))
        return [f"uploads partitions {', '.join(each)}: {why}" for why, each in by_trouble.items()]

    async def close(self, seconds: float) -> None:
        """Wait for the queue, at most so long; answer what is left, and disconnect."""
        ends = self._loop.time() + seconds
        while self._bytes and self._loop.time() < ends:  # noqa: ASYNC110 - nobody else waits for it
            await asyncio.sleep(0.01)
        await self.tasks.cancel()
        for lane in self._lanes:
            self._give_up(lane.overdue(float("inf")))
        if self._session is not None:
            await self._session.close()

    def _is_refused(self, lane: Lane) -> bool:
        return bool(lane.trouble) and self._loop.time() - lane.since > TROUBLE_SECONDS

    # --- frames

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send a frame of each partition whose leader has no request in flight."""
        self._is_flush_due = False
        session = self._session
        if session is None or self._reason:
            return
        by_node: dict[int, list[Lane]] = {}
        for lane in self._ready:
            if lane.trouble:
                continue
            node = session.leader(lane.partition)
            if node is None:
                lane.fail(LeaderNotAvailableError(), self._loop.time())
            elif node not in self._busy:
                by_node.setdefault(node, []).append(lane)
        for node, lanes in by_node.items():
            self._busy.add(node)
            self.tasks.start(self._send(session, node, lanes), "the sending of a frame")

    async def _send(self, session: KafkaSession, node: int, lanes: list[Lane]) -> None:
        taken: dict[Lane, list[WaitingUpload]] = {}
        frames: dict[int, bytes] = {}
        size = 0
        for lane in lanes:
            if size > REQUEST_BYTES:
                break
            if uploads := lane.take():
                taken[lane] = uploads
                frames[lane.partition] = encode_frame([each.upload for each in uploads])
                size += len(frames[lane.partition])
            if not len(lane):
                self._ready.pop(lane, None)
        trouble: dict[int, BaseException | None] = {}
        try:
            if frames:
                trouble = await session.append(node, frames)
        except FAILURES as error:
            trouble = dict.fromkeys(frames, error)
        except asyncio.CancelledError:
            for lane, uploads in taken.items():
                lane.put_back(uploads)
            raise
        finally:
            self._busy.discard(node)
        for lane, uploads in taken.items():
            self._finish(lane, uploads, trouble.get(lane.partition, RequestTimedOutError()))
        if self._ready:
            self._flush_soon()

    def _finish(self, lane: Lane, uploads: list[WaitingUpload], error: BaseException | None) -> None:
        if error is not None:
            self._counters.frame_failures += 1
            lane.put_back(uploads)
            lane.fail(error, self._loop.time())
            self._ready[lane] = None
            return
        self._counters.frames += 1
        lane.trouble, lane.lacks_replicas = None, False
        self._outage.answered(lane.partition)
        self._done(uploads, "")

    def _done(self, uploads: list[WaitingUpload], reason: str) -> None:
        self._bytes -= sum([len(each.upload) for each in uploads]) + UPLOAD_OVERHEAD_BYTES * len(uploads)
        for each in uploads:
            each.done(reason)

    def _give_up(self, uploads: list[WaitingUpload]) -> None:
        if uploads:
            self._done(uploads, GAVE_UP)

    # --- the session

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = self._loop.time()
            for lane in self._lanes:
                self._give_up(lane.overdue(now))
                if not len(lane):
                    self._ready.pop(lane, None)
            self._counters.queue_bytes = self._bytes
            self._counters.is_kafka_away = bool(self._reason) or any(map(self._is_refused, self._lanes))

    async def _keep(self) -> None:
        """Connect, work until Kafka is lost, and connect again."""
        failures = 0
        while True:
            try:
                self._session = await self._open_session()
            except SessionError as error:
                self._refuse(str(error), error.__cause__)
                await asyncio.sleep(_jittered(RECONNECTS[min(failures, len(RECONNECTS) - 1)]))
                failures += 1
                continue
            failures = 0
            try:
                await self._use(self._session)
            finally:
                session, self._session = self._session, None
                with suppress(*FAILURES):
                    await session.close()

    async def _use(self, session: KafkaSession) -> None:
        """Wait until a relay has begun; then look after partitions in trouble until none takes uploads."""
        try:
            while not await session.has_begun():
                self._refuse(NOT_BEGUN)
                await asyncio.sleep(BEGIN_SECONDS)
                await session.refresh()
            self._take()
            await self._repair(session)
            return
        except FAILURES as error:
            self._refuse(cause(error), error)
        await asyncio.sleep(_jittered(RECONNECTS[0]))

    async def _repair(self, session: KafkaSession) -> None:
        """Look after lanes in trouble; return when no broker has answered for a while, or no lane works."""
        attempts, answered_at = 0, self._loop.time()
        while True:
            await asyncio.sleep(_jittered(RETRIES[min(attempts, len(RETRIES) - 1)]))
            bad = [lane for lane in self._lanes if lane.trouble]
            for lane in bad:
                if lane.trouble and self._is_refused(lane):
                    self._outage.failed(lane.partition, lane.trouble)
            attempts = attempts + 1 if bad else 0
            if bad and await self._is_repaired(session):
                self._flush_soon()
                answered_at = self._loop.time()
            elif not bad:
                answered_at = self._loop.time()
            now = self._loop.time()
            are_all_bad = all(lane.trouble and now - lane.since > LOST_SECONDS for lane in self._lanes)
            if now - answered_at > LOST_SECONDS or are_all_bad:
                error = bad[0].trouble
                self._refuse(cause(error) if error else AWAY, error)
                return

    async def _is_repaired(self, session: KafkaSession) -> bool:
        """Find out which partitions have a leader that answers; return whether any broker does."""
        try:
            await session.refresh()
            for lane in self._lanes:
                node = session.leader(lane.partition)
                if node is None:
                    lane.fail(LeaderNotAvailableError(), self._loop.time())
                elif await session.is_ready(node):
                    self._try(lane)
                else:
                    lane.fail(NodeNotReadyError(), self._loop.time())
        except FAILURES:
            return False
        return True

    def _refuse(self, reason: str, error: BaseException | None = None) -> None:
        if error and is_outage(error):
            self._outage.failed(SESSION, error)
        elif reason != self._reason:
            _log.warning("uploads are refused", reason=reason)
        self._reason = reason

    def _take(self) -> None:
        if not self._outage.cause:
            _log.info("uploads are taken")
        self._reason = ""
        for lane in self._lanes:
            self._try(lane)
        self._outage.answered(SESSION)
        self._flush_soon()

    def _try(self, lane: Lane) -> None:
        """Take uploads for it again. Whether enough replicas are in sync, only an acknowledgement says."""
        if lane.trouble and lane.lacks_replicas:
            self._outage.failed(lane.partition, lane.trouble)
        elif not lane.lacks_replicas:
            self._outage.answered(lane.partition)
        lane.trouble = None


def _jittered(seconds: float) -> float:
    """Return 1/2 to 1 of a time, so that many edges do not come back at once."""
    return seconds * (1 + secrets.randbelow(1000) / 1000) / 2
