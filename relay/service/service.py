"""The loop of a relay: poll, fold, send, commit. Then markers, and partitions that are new.

Rule: a batch's position is committed after Kafka has all its records. So whatever ends the process, the next
relay sends at most the last batches again, byte for byte (see `deniable.relay.recovery`).

The fold runs in a thread, so that heartbeats and probes are answered meanwhile; one poll is folded, sent and
committed before the next one, which bounds what is in memory.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, described
from deniable.cluster.connection.start_log import StartLog
from deniable.cluster.topics.findings import unknown_codec
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.estimators.errors import DefectError, DeniableError
from deniable.relay.control import RelaySettings, is_settings
from deniable.relay.fold import Fold
from deniable.relay.keys import RelayKeys
from deniable.relay.service.delivery import PackDelivery
from deniable.relay.service.errors import RelayError
from deniable.relay.service.following import names_of
from deniable.relay.service.group import RelayGroup
from deniable.relay.service.metrics import RelayMetrics
from deniable.relay.service.opening import open_partition
from deniable.relay.service.partition import PartitionRelay, SealedBatch, UploadRecord
from deniable.relay.service.pulse import Pulse

POLL_MILLISECONDS = 100
RETRY_SECONDS = 1.0
SHOW_SECONDS = 2.0
ANSWER_SECONDS = 5.0  # after which Kafka does not answer
STOP_SECONDS = 2.0  # to send and commit what was read
LEAVE_SECONDS = 1.5  # to leave the group and disconnect
GROUP, ENDS = "group", "ends"  # beside topics and partitions, what may fail for Kafka

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RelayConfig:
    """What a relay needs to know.

    Parameters
    ----------
    cluster : which Kafka.
    uploads, reports, rejected : names of topics.
    group : of the relays.
    report_partitions : of `reports`.
    settings : of the collection file.
    idle_seconds : see the collection file.
    rhythms : window_seconds and grace_seconds of the collections.
    names : of the collections, by fingerprint.
    shuffles : of collections whose shuffled reports have an epsilon, by fingerprint.
    """

    cluster: Cluster
    uploads: str
    reports: str
    rejected: str
    group: str
    report_partitions: int
    settings: RelaySettings
    idle_seconds: float
    rhythms: Sequence[tuple[int, int]]
    names: Mapping[int, str]
    shuffles: Mapping[int, HonestShuffle] = field(default_factory=dict)


@dataclass
class Work:
    """A partition that is ours: its fold, its control records, and the rebalance it was positioned after.

    `reads_to` is where it is as far as the relay before it; `is_committed` is False after a failed commit.
    """

    relay: PartitionRelay
    pulse: Pulse
    reads_to: int
    turn: int
    is_committed: bool = True


class RelayService:
    """One relay.

    Parameters
    ----------
    config : see there.
    keys : of the relays.
    """

    def __init__(self, config: RelayConfig, keys: RelayKeys) -> None:
        self._config, self._keys = config, keys
        written = (config.uploads, config.reports, config.rejected)
        self._away = Outage(config.cluster, "uploads wait in Kafka", written)
        self._metrics = RelayMetrics(config.names, config.shuffles)
        self.registry = self._metrics.registry
        self._works: dict[int, Work] = {}
        self._ends: dict[int, int] = {}
        self._stopping = asyncio.Event()
        self._fold_thread = ThreadPoolExecutor(1, "fold")
        self._has_begun = False
        self._start = StartLog()

    def stop(self) -> None:
        """End `run` within STOP_SECONDS and LEAVE_SECONDS, after what is being sent."""
        self._stopping.set()

    def reasons_not_ready(self) -> list[str]:
        """Return why `/readyz` answers 503; empty if it answers 200."""
        reasons = [str(self._away)] if self._away.cause else []
        if not self._has_begun:
            reasons.append("the relay has not joined its group yet")
        for partition, work in sorted(self._works.items()):
            if work.relay.fold.position < work.reads_to:
                at = work.relay.fold.position
                reasons.append(f"partition {partition} is read again: at offset {at} of {work.reads_to}")
        return reasons

    async def run(self) -> None:
        """Relay until `stop`.

        What a rebalance or an absent Kafka delays is cancelled when the time to stop is over: whatever ends a
        relay, the next one sends the last batches again.

        Raises
        ------
        RelayError or ControlError if no retry helps; DefectError.
        """
        working = asyncio.create_task(self._work())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((working,), timeout=STOP_SECONDS)
        for task in (working, stopping):
            task.cancel()
        error, _ = await asyncio.gather(working, stopping, return_exceptions=True)
        self._fold_thread.shutdown(wait=False)
        if isinstance(error, DeniableError):
            raise error
        if isinstance(error, Exception):
            raise DefectError("the relay", error)

    async def _work(self) -> None:
        config = self._config
        while not self._stopping.is_set():
            group = RelayGroup(config.cluster, config.uploads, config.group)
            delivery = PackDelivery(config.cluster, self._away)
            try:
                await group.start()
                await delivery.start()
                self._away.answered(GROUP)
                await self._relay(group, delivery)
            except (KafkaError, TimeoutError, OSError) as error:
                self._judge(error)
                await self._pause()
            finally:
                for partition in list(self._works):
                    self._forget(partition)
                await _stopped(delivery, group)

    async def _relay(self, group: RelayGroup, delivery: PackDelivery) -> None:
        shown = asyncio.create_task(self._show(group))
        try:
            while not self._stopping.is_set():
                if shown.done():
                    await shown
                try:
                    await self._turn(group, delivery)
                except OffsetOutOfRangeError:
                    self._works.clear()
        finally:
            shown.cancel()
            await asyncio.gather(shown, return_exceptions=True)

    async def _turn(self, group: RelayGroup, delivery: PackDelivery) -> None:
        await self._open(group)
        for partition, records in (await group.poll(POLL_MILLISECONDS)).items():
            if (work := self._works.get(partition)) is not None:
                await self._take(group, delivery, work, records)
        for work in list(self._works.values()):
            await self._beat(group, delivery, work)

    async def _open(self, group: RelayGroup) -> None:
        """Position partitions after a rebalance; keep the folds of those that we already had."""
        turn, ours = group.turns.number, group.assigned()
        if not group.turns.is_open:
            return
        self._has_begun = True
        for lost in self._works.keys() - ours:
            self._forget(lost)
        for partition in sorted(ours):
            work = self._works.get(partition) or await self._opened(group, partition)
            if work.turn != turn:
                with suppress(IllegalStateError):  # the next rebalance has begun
                    group.seek(partition, work.relay.fold.position)
                    work.turn = turn
            self._works[partition] = work

    def _forget(self, partition: int) -> None:
        del self._works[partition]
        self._away.forget((self._config.uploads, partition))

    async def _opened(self, group: RelayGroup, partition: int) -> Work:
        opening = await open_partition(group, partition, self._keys)
        self._metrics.openings.inc()
        if opening.loss:
            self._metrics.losses.inc()
            _log.error("uploads are lost", partition=partition, why=opening.loss)
        config = self._config
        relay = PartitionRelay(
            partition,
            self._keys,
            opening.start,
            opening.after,
            (config.reports, config.rejected),
            config.report_partitions,
        )
        _log.info("partition opened", partition=partition, offset=opening.start.offset, end=opening.end)
        return Work(
            relay, Pulse(config.settings, self._keys, config.idle_seconds, config.rhythms), opening.after, -1
        )

    async def _take(
        self, group: RelayGroup, delivery: PackDelivery, work: Work, records: Sequence[UploadRecord]
    ) -> None:
        loop = asyncio.get_running_loop()
        sealed = await loop.run_in_executor(self._fold_thread, work.relay.take, records)
        if sealed and await delivery.send(
            [record for each in sealed for record in each.records], lambda: self._is_ours(work)
        ):
            await self._commit(group, work, sealed)

    async def _commit(self, group: RelayGroup, work: Work, sealed: Sequence[SealedBatch]) -> None:
        for each in sealed:
            self._metrics.sent(each)
        partition = work.relay.fold.partition
        try:
            await group.commit(partition, sealed[-1].position)
            work.is_committed = True
        except (KafkaError, TimeoutError, IllegalStateError) as error:
            # The next commit covers it; whoever takes the partition over sends these batches again.
            if work.is_committed:
                _log.info("position not committed", partition=partition, why=described(error))
            work.is_committed = False

    def _is_ours(self, work: Work) -> bool:
        """Whether a batch of this partition is still to be sent by us, while Kafka does not take it."""
        return self._works.get(work.relay.fold.partition) is work

    async def _beat(self, group: RelayGroup, delivery: PackDelivery, work: Work) -> None:
        """Append the control record that is due, if any."""
        fold = work.relay.fold
        is_at_end = work.turn == group.turns.number and await group.is_at_end(fold.partition)
        value = work.pulse.due(fold, is_at_end, time.monotonic(), time.time() * 1000)
        if value is None:
            return
        offset = await delivery.append(self._config.uploads, fold.partition, value)
        if offset is not None:
            work.pulse.appended(is_settings(value), offset, time.monotonic())
        self._say_what_follows(fold, work.pulse)

    def _say_what_follows(self, fold: Fold, pulse: Pulse) -> None:
        """Log, once for each settings, what the file asks for in vain."""
        if (found := pulse.news()) is None:
            return
        if found.returned:
            _log.error(
                "collections ended on this log cannot return: change a name or a parameter",
                partition=fold.partition,
                collections=names_of(found.returned, self._config.names),
            )
        if found.differs:
            _log.warning(
                "settings under this revision are already in force and differ from the file's: "
                "raise revision",
                partition=fold.partition,
                revision=self._config.settings.revision,
            )

    async def _show(self, group: RelayGroup) -> None:
        """Refresh gauges, and notice when Kafka no longer answers."""
        while True:
            try:
                if partitions := list(self._works):
                    async with asyncio.timeout(ANSWER_SECONDS):
                        self._ends = await group.ends(partitions)
                self._away.answered(ENDS)
            except (KafkaError, TimeoutError) as error:
                self._away.failed(ENDS, error)
            self._metrics.away.set(bool(self._away.cause))
            if not self._away.cause:
                self._start.has_time("; ".join(self.reasons_not_ready()))
            self._metrics.show([work.relay for work in self._works.values()], self._ends)
            await asyncio.sleep(SHOW_SECONDS)

    def _judge(self, error: Exception) -> None:
        """Note an error that is worth a retry; raise what needs another permission, or another codec."""
        if isinstance(error, GroupAuthorizationFailedError | TopicAuthorizationFailedError):
            raise RelayError(
                f"Kafka refuses ({type(error).__name__}): run deniable doctor --as relay, which says what is "
                "missing"
            ) from error
        if isinstance(error, UnsupportedCodecError):
            raise RelayError(str(unknown_codec(self._config.uploads))) from error
        self._away.failed(GROUP, error)
        self._metrics.away.set(1)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), RETRY_SECONDS)


async def _stopped(delivery: PackDelivery, group: RelayGroup) -> None:
    """Stop both; a broker that does not answer must not keep the process.

    Without a broker, aiokafka's stop ends by errors of its requests, or by their cancellation.
    """
    ends = [asyncio.wait_for(each.stop(), LEAVE_SECONDS) for each in (delivery, group)]
    await asyncio.gather(*ends, return_exceptions=True)
