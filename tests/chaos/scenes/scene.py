"""Workers under load: how they begin, how the load ends, and the verdict on what they stored."""

import random
import time
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from deniable.config.file import Configuration
from tests.chaos.faults.fault import Fault
from tests.chaos.faults.stage import Stage
from tests.chaos.judging import stored as stores
from tests.chaos.judging import verdict as verdicts
from tests.chaos.judging.recount import Recount, recount
from tests.chaos.judging.service import Service, longest_gap, longest_partition_gap, steps_back
from tests.chaos.judging.verdict import Verdict
from tests.chaos.load.load import Load
from tests.chaos.load.stranger import Stranger
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.processes.collection_setup import compact_all_the_time, configure
from tests.chaos.processes.fleet import Fleet
from tests.chaos.processes.positions import log_ends
from tests.chaos.processes.workers import Workers
from tests.chaos.scenes.order import Order, RunError
from tests.support.processes import wait_until

DRAIN_SECONDS = 120.0


class Scene:
    """Workers and a producer of packs.

    Parameters
    ----------
    order, fault : of the run.
    broker : or cluster, on which topics are created.
    folder : empty, for the collection file, working folders and logs.

    Attributes
    ----------
    configuration : of all processes.
    fleets : all processes, by kind.
    senders : threads that send the load until `stopped`, and have an `error`.
    replay_options : of `deniable replay`.
    """

    replay_options: tuple[str, ...] = ()

    def __init__(self, order: Order, fault: Fault, broker: ChaosBroker | ChaosCluster, folder: Path) -> None:
        self.order, self.fault, self.broker, self.folder = order, fault, broker, folder
        self.servers = broker.bootstrap_servers
        self.configuration = self.configure(f"chaos-{uuid4().hex[:10]}-")
        self.topics = self.configuration.topics
        compact_all_the_time(self.servers, self.topics)
        self.workers = Workers(self.configuration, folder, order.options)
        self.fleets: list[Fleet] = [self.workers]
        self.service = Service(self.servers, self.topics)
        self.senders = self.load()
        self.differing: list[str] = []

    def configure(self, prefix: str) -> Configuration:
        """Write the collection file and create its topics."""
        fault = self.fault
        return configure(
            self.folder, self.servers, prefix, fault.grace_seconds, fault.window_seconds, fault.replication
        )

    def load(self) -> list[Any]:
        """Return the senders."""
        order, fault = self.order, self.fault
        load = Load(self.configuration, order.rate, fault.malformed, order.seed)
        return [load, Stranger(self.configuration, order.seed + 1)][: 1 + fault.stranger]

    def begin(self) -> None:
        """Start all processes, and wait until they work."""
        for _ in range(self.fault.workers):
            self.workers.start()
        if not self.workers.wait_until_open():
            raise RunError("the workers did not open their ledgers")

    def stage(self) -> Stage:
        """Return what the fault may touch, once the load begins."""
        chance, ends_at = random.Random(self.order.seed), time.monotonic() + self.order.seconds
        parts = (self.broker, ends_at, self.workers, self.service, self.senders[0])
        self.staged = Stage(chance, self.order.seed, *parts, senders=self.senders)
        return self.staged

    def drain(self) -> None:
        """Wait until the log, which no longer grows, is counted, stored and published; then end the workers.

        Raises
        ------
        RunError if that takes too long.
        """
        self.workers.keep_running(2)
        since = time.monotonic()
        if not wait_until(lambda: self.service.drained(since), DRAIN_SECONDS):
            newest = self.service.samples[-1] if self.service.samples else None
            raise RunError(f"the log was not counted to its end: {newest}")
        ends = log_ends(self.configuration)
        if not wait_until(
            lambda: not verdicts.uncounted(ends, stores.counts(self.servers, self.topics)), DRAIN_SECONDS
        ):
            raise RunError("what is counted was not published")
        self.died = sum(len(fleet.died) for fleet in self.fleets)
        self.workers.stop()

    def verdict(self) -> Verdict:
        """Compare what was stored with a recount, once all has ended."""
        load = self.senders[0]
        literal, rate = self.recount(), load.sent / max(load.seconds, 1.0)
        loads = [sender for sender in self.senders if isinstance(sender, Load)]
        verdict = self.judge(literal, set[bytes]().union(*(each.acknowledged for each in loads)), rate)
        lost = sum(len(each.appended - literal.seen) for each in loads)
        return replace(verdict, missing=verdict.missing + lost)

    def recount(self) -> Recount:
        workers, topics = self.workers, self.topics
        positions = stores.ledgers(self.servers, topics).positions
        return recount(
            self.servers, topics.reports, topics.partitions, workers.known, workers.retired, positions
        )

    def judge(self, literal: Recount, acknowledged: Set[bytes] = frozenset(), rate: float = 0.0) -> Verdict:
        """Return the verdict on the workers.

        Parameters
        ----------
        literal : the recount.
        acknowledged : ids of packs that must count.
        rate : packs a second that the load achieved.
        """
        servers, topics, collections = self.servers, self.topics, self.workers.known
        samples, overdue = self.service.samples, self.fault.overdue_seconds
        ledgers, finals = stores.ledgers(servers, topics), stores.finals(servers, topics)
        off = verdicts.finals_off(literal, finals)
        self.differing = verdicts.differing(literal.kept, ledgers)
        seconds_late = verdicts.lateness(finals, collections)
        return Verdict(
            difference=verdicts.difference(literal.kept, ledgers),
            published=verdicts.difference(literal.kept, stores.counts(servers, topics)),
            refusals_off=verdicts.refusals_off(literal.rejected, stores.refusals(servers, topics)),
            finals_off=sum(off.values()),
            finals_changed=verdicts.finals_changed(off, finals),
            replayed=0,
            missing=len(acknowledged - literal.ids),
            doubled=verdicts.doubled(literal, ledgers),
            steps_back=steps_back(samples),
            uncounted=verdicts.uncounted(log_ends(self.configuration), ledgers),
            died=self.died,
            records=literal.records,
            packs=len(literal.ids),
            rejected=literal.rejected.total(),
            finals=len(finals),
            longest_gap=round(longest_gap(samples), 1),
            partition_gap=round(longest_partition_gap(samples, topics.partitions), 1),
            packs_per_second=round(rate),
            compacted=round(1 - ledgers.records / max(ledgers.offsets, 1), 3),
            latest_final=round(max(seconds_late.values(), default=0.0), 1),
            ready_seconds=round(self.staged.ready_seconds, 1),
            late=0 if overdue is None else verdicts.late(literal, seconds_late, collections, overdue),
        )

    def describe(self) -> str:
        """Return the last lines of every log, the cells that differ, and the command that repeats the run."""
        return "\n".join(
            [*(fleet.describe() for fleet in self.fleets), *self.differing, f"again: {self.order.again}"]
        )

    def stop(self) -> None:
        """End all processes."""
        for fleet in reversed(self.fleets):
            fleet.stop()
