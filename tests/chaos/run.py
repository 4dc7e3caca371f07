"""One run: set up topics, workers and load, inject a fault, judge the result."""

import random
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafka.errors import KafkaError

from deploy.broker.errors import BrokerError
from deploy.config.file import Configuration
from tests.chaos.faults.faults import FAULTS, Fault
from tests.chaos.faults.stage import Stage
from tests.chaos.judging import stored as stores
from tests.chaos.judging import verdict as verdicts
from tests.chaos.judging.recount import recount
from tests.chaos.judging.service import Service, longest_gap, longest_partition_gap, steps_back
from tests.chaos.judging.verdict import Verdict
from tests.chaos.load.load import Load
from tests.chaos.load.stranger import Stranger
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.collection_setup import compact_all_the_time, configure, delete_topics
from tests.chaos.processes.positions import log_ends
from tests.chaos.processes.workers import ROOT, Workers
from tests.support.processes import wait_until

DRAIN_SECONDS = 120.0
REPLAY_SECONDS = 180.0


class RunError(RuntimeError):
    """A run failed or could not be judged; the message has the workers' last lines."""


@dataclass(frozen=True)
class Order:
    """The parameters of a run; fault and seed determine everything except the machine's speed.

    Parameters
    ----------
    fault : a name of FAULTS.
    seed : of order, times, victims and the load.
    seconds : duration of the load.
    packs_per_second : of the load.
    options : for every worker's runner, such as a defect.
    replay : whether `deniable replay` is run, too.
    """

    fault: str
    seed: int
    seconds: float = 60.0
    packs_per_second: int = 2000
    options: Sequence[str] = ()
    replay: bool = True

    @property
    def again(self) -> str:
        """Return the command that repeats it."""
        arguments = f"--fault {self.fault} --seed {self.seed} --seconds {self.seconds:g}"
        return f'make chaos ARGS="{arguments} --rate {self.packs_per_second} --again"'


class Outcome(NamedTuple):
    """A verdict and, unless it is exact, the workers' last lines and the command that repeats the run."""

    verdict: Verdict
    story: str


def run(order: Order, broker: ChaosBroker, folder: Path, act: Fault | None = None) -> Outcome:
    """Run an order and judge the result.

    Parameters
    ----------
    order : parameters of the run.
    broker : stays running in any case.
    folder : empty, for the collection file and the workers.
    act : replaces the fault that `order` names.

    Raises
    ------
    RunError, with the workers' last lines, if anything but the counts is wrong.
    """
    fault = act or FAULTS[order.fault]
    prefix = f"chaos-{uuid.uuid4().hex[:10]}-"
    configuration = configure(folder, broker.bootstrap_servers, prefix, fault.grace_seconds)
    compact_all_the_time(broker.bootstrap_servers, configuration.topics)
    workers = Workers(configuration, folder, order.options)
    try:
        verdict = _judged(order, fault, broker, workers)
        return Outcome(verdict, "" if verdict.exact else f"{workers.describe()}\nagain: {order.again}")
    except (RunError, KafkaError, BrokerError, OSError) as error:
        raise RunError(f"{error!r}\n{workers.describe()}\nagain: {order.again}") from error
    finally:
        broker.resume()
        broker.start()
        workers.stop()
        delete_topics(broker.bootstrap_servers, configuration.topics)


def _judged(order: Order, fault: Fault, broker: ChaosBroker, workers: Workers) -> Verdict:
    configuration = workers.configuration
    load = Load(configuration, order.packs_per_second, fault.malformed, order.seed)
    stranger = Stranger(configuration, order.seed + 1)
    service = Service(broker.bootstrap_servers, configuration.topics)
    threads: list[Load | Service | Stranger] = [load, service]
    if fault.stranger:
        threads.append(stranger)
    for _ in range(fault.workers):
        workers.start()
    if not workers.wait_until_open():
        raise RunError("the workers did not open their ledgers")
    chance = random.Random(order.seed)
    try:
        for thread in threads:
            thread.start()
        stage = Stage(chance, order.seed, broker, workers, load, time.monotonic() + order.seconds)
        fault.act(stage)
        stage.rest(stage.left, stage.left)
        for sender in threads:
            if sender is not service:
                sender.stopped.set()
                sender.join()
        died = drain(workers, service)
    finally:
        for thread in threads:
            thread.stopped.set()
    for thread in threads:
        thread.join()
    if load.error or service.error:
        raise RunError(f"load or sampler failed: {load.error!r}, {service.error!r}")
    rate = load.sent / max(load.seconds, 1.0)
    return judge(order, workers, died, service, load.acknowledged, rate, fault.overdue_seconds)


def drain(workers: Workers, service: Service) -> int:
    """Wait until the log, which no longer grows, is counted, stored and published; then end the workers.

    Returns
    -------
    The number of workers that ended unexpectedly.

    Raises
    ------
    RunError if that takes too long.
    """
    workers.keep_running(2)
    since, configuration = time.monotonic(), workers.configuration
    if not wait_until(lambda: service.drained(since), DRAIN_SECONDS):
        newest = service.samples[-1] if service.samples else None
        raise RunError(f"the log was not counted to its end: {newest}")
    ends = log_ends(configuration)
    servers, topics = configuration.kafka.bootstrap_servers, configuration.topics
    if not wait_until(lambda: stores.counts(servers, topics).positions == ends, DRAIN_SECONDS):
        raise RunError("what is counted was not published")
    died = len(workers.died)
    workers.stop()
    return died


def judge(
    order: Order,
    workers: Workers,
    died: int,
    service: Service,
    acknowledged: Set[bytes] = frozenset(),
    packs_per_second: float = 0.0,
    overdue: float | None = None,
) -> Verdict:
    """Compare what the workers stored with a recount.

    Parameters
    ----------
    order, workers, service : of the run.
    died : workers that ended unexpectedly.
    acknowledged : ids of packs that must count.
    packs_per_second : achieved by the load.
    overdue : see `Fault.overdue_seconds`.
    """
    configuration = workers.configuration
    servers, topics = configuration.kafka.bootstrap_servers, configuration.topics
    collections = workers.known
    literal = recount(servers, topics.reports, topics.partitions, collections, workers.retired)
    ledgers, finals = stores.ledgers(servers, topics), stores.finals(servers, topics)
    seconds_late = verdicts.lateness(finals, collections)
    return Verdict(
        difference=verdicts.difference(literal.kept, ledgers),
        published=verdicts.difference(literal.kept, stores.counts(servers, topics)),
        refusals_off=verdicts.refusals_off(literal.rejected, stores.refusals(servers, topics)),
        finals_off=verdicts.finals_off(literal, finals),
        # If nothing counts, replay does not call that a success.
        replayed=replayed(configuration) if order.replay and literal.ids else 0,
        missing=len(acknowledged - literal.ids),
        doubled=verdicts.doubled(literal, ledgers),
        steps_back=steps_back(service.samples),
        uncounted=verdicts.uncounted(log_ends(configuration), ledgers),
        died=died,
        records=literal.records,
        packs=len(literal.ids),
        rejected=literal.rejected.total(),
        finals=len(finals),
        longest_gap=round(longest_gap(service.samples), 1),
        partition_gap=round(longest_partition_gap(service.samples, topics.partitions), 1),
        packs_per_second=round(packs_per_second),
        compacted=round(1 - ledgers.records / max(ledgers.offsets, 1), 3),
        latest_final=round(max(seconds_late.values(), default=0.0), 1),
        late=0 if overdue is None else verdicts.late(literal, seconds_late, collections, overdue),
    )


def replayed(configuration: Configuration, *options: str) -> int:
    """Return the difference that `deniable replay` prints; -1 if it prints none."""
    command = [sys.executable, "-m", "deploy", "replay", "--config", str(configuration.path), *options]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=REPLAY_SECONDS, check=False
    )
    label, _, number = ended.stdout.strip().partition(": ")
    return int(number.replace(",", "")) if label == "difference" else -1
