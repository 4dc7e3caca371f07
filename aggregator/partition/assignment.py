"""The partitions assigned to this worker, and the tasks that serve them."""

import asyncio
from collections.abc import Iterable, Mapping

import structlog

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.fetching.record_source import RecordSource
from deniable.aggregator.partition.owner import PartitionOwner
from deniable.aggregator.partition.timing import DEFAULT, PartitionTiming
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.topics.markers import Markers
from deniable.aggregator.topics.relays import Relays
from deniable.cluster.connection.outage import Outage
from deniable.cluster.connection.start_log import StartLog

#: Ledgers that are opened at a time: with hundreds, requests would wait for each other until they time out.
OPENINGS = 16

log = structlog.get_logger()


class Assignment:
    """Owners by partition. A rebalance suspends them; those of partitions that stay go on.

    Fencing tells whether another worker has owned a partition meanwhile: the next transaction fails then.

    Parameters
    ----------
    deployment : what to work on.
    metrics : of the worker.
    timing : of the owners; by default that of the collection file.
    """

    def __init__(
        self, deployment: Deployment, metrics: WorkerMetrics, timing: PartitionTiming | None = None
    ) -> None:
        self.deployment = deployment
        self.metrics = metrics
        self.timing = timing or DEFAULT.paced(deployment.checkpoint_seconds)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        self._settled = asyncio.Event()  # cleared: a rebalance is under way
        self._owners: dict[int, PartitionOwner] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._openings = asyncio.Semaphore(OPENINGS)
        self._shown: dict[str, EstimateRecord] = {}
        self._assigned = False
        self._start = StartLog()
        topics = deployment.topics
        self.outage = Outage(deployment.cluster, "counting waits", (topics.reports, topics.state))
        self.markers = Markers(deployment.cluster, topics, self.outage)
        self.relays = Relays(self.markers, deployment.relay_wait_seconds)

    def offer(self, partition: int, run: Run) -> None:
        """Pass delivered records to their partition's owner, if any."""
        owner = self._owners.get(partition)
        if owner is not None:
            owner.offer(run)

    async def assign(self, partitions: Iterable[int], source: RecordSource) -> None:
        """Own exactly these partitions; first discard the ledgers of all others."""
        owned = list(partitions)
        await self.release([each for each in self._owners if each not in owned])
        timing = self.timing.shared_by(len(owned))
        for partition in owned:
            if kept := self._owners.get(partition):
                kept.timing = kept.readiness.timing = timing
                continue
            owner = PartitionOwner(
                partition,
                self.deployment,
                source,
                self.metrics,
                timing,
                self._openings,
                self.markers.ask,
                self._settled,
                self.relays.follow,
                outage=self.outage,
            )
            self._owners[partition] = owner
            task = self._tasks[partition] = asyncio.create_task(owner.run(self._stopping))
            task.add_done_callback(self.note_end)
        self._assigned = True
        self._settled.set()
        if not self._owners:
            log.info("no partition is left for this worker; it takes over when another one ends")

    def suspend(self) -> None:
        """Begin nothing until the rebalance is over: no owner may open a ledger that another worker gets."""
        self._assigned = False
        self._settled.clear()

    async def release(self, partitions: Iterable[int] | None = None) -> None:
        """Discard these ledgers, or all; the next owner counts again what they had not stored."""
        partitions = list(self._tasks if partitions is None else partitions)
        tasks = [self._tasks.pop(each) for each in partitions]
        for partition in partitions:
            self._owners.pop(partition, None)
        while running := [task for task in tasks if not task.done()]:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=self.timing.cancel)
        for partition in partitions:
            self.metrics.forget_partition(partition)
            self.outage.forget(partition)
            for collection in self.deployment.home(partition).values():
                self.metrics.forget_estimate(collection.name)
                self._shown.pop(collection.name, None)

    async def finish(self) -> None:
        """Write last checkpoints for an orderly stop; give up after `timing.drain` seconds.

        The worker must still leave its group: otherwise the next owner waits for its session to expire.
        """
        self._stopping.set()
        self._settled.set()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks.values(), timeout=self.timing.drain)
        for task in late:
            log.warning("a last checkpoint took too long; the next owner counts again what it held")
            task.cancel()

    def show_standstills(self) -> None:
        """Show which partitions are stalled."""
        for owner in self._owners.values():
            owner.readiness.show_standstill()

    def log_start(self) -> None:
        """Log now and then how many partitions are served, until all are for the first time."""
        reasons = self.reasons_not_ready()
        if not self.outage.cause:  # which is logged once, however long it lasts
            served = len(self._owners) - len(reasons) if self._assigned else 0
            self._start.has_time(next(iter(reasons), ""), partitions=f"{served} of {len(self._owners)}")

    async def show_estimates(self, newest: Mapping[str, EstimateRecord]) -> None:
        """Show the newest estimates, by name, of the collections that this worker estimates.

        They come from the topic, so a new owner shows them before its first estimate.
        """
        for partition in list(self._owners):
            for collection in self.deployment.home(partition).values():
                record = newest.get(collection.name)
                is_new = record is not None and record is not self._shown.get(collection.name)
                if record is not None and is_new and partition in self._owners:
                    self._shown[collection.name] = record
                    self.metrics.show_estimate(record)
                    await asyncio.sleep(0)  # the partition may be revoked meanwhile

    @property
    def is_counting(self) -> bool:
        """Whether a ledger has accepted the collection file, and stores counts."""
        return any(owner.readiness.reason_not_ready is None for owner in self._owners.values())

    def reasons_not_ready(self) -> list[str]:
        """Why this worker is not ready; empty if it is."""
        if not self._assigned:
            return ["waiting for partitions"]
        reasons = [owner.readiness.reason_not_ready for owner in self._owners.values()]
        return [reason for reason in reasons if reason]

    def note_end(self, task: "asyncio.Task[None]") -> None:
        """An owner ends only by cancellation, by a stop, or by an error that no retry can fix."""
        error = None if task.cancelled() else task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None and not self.failed.done():
            self.failed.set_exception(error)
