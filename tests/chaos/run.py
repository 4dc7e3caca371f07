"""One run: set up topics, processes and load, inject a fault, judge the result."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kafka.errors import KafkaError

from deniable.config.file import Configuration
from deniable.deploy.broker.errors import BrokerError
from tests.chaos.faults.catalog import FAULTS
from tests.chaos.faults.fault import Fault, PathFault
from tests.chaos.judging.verdict import Verdict
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.processes.collection_setup import delete_topics
from tests.chaos.scenes.order import Order, RunError
from tests.chaos.scenes.path import PathScene
from tests.chaos.scenes.scene import Scene
from tests.support.paths import REPOSITORY

REPLAY_SECONDS = 180.0


class Outcome(NamedTuple):
    """A verdict and, unless it is exact, the last lines of all processes and how to repeat the run."""

    verdict: Verdict
    story: str


def run(order: Order, broker: ChaosBroker | ChaosCluster, folder: Path, act: Fault | None = None) -> Outcome:
    """Run an order and judge the result.

    Parameters
    ----------
    order : parameters of the run.
    broker : or cluster; it is whole and running at the end in any case.
    folder : empty, for the collection file and the processes.
    act : replaces the fault that `order` names.

    Raises
    ------
    RunError, with the last lines of all processes, if anything but the counts is wrong.
    """
    fault = act or FAULTS[order.fault]
    scene = (PathScene if isinstance(fault, PathFault) else Scene)(order, fault, broker, folder)
    try:
        _play(scene)
        verdict = scene.verdict()
        # Replay does not call it a success if there is nothing to compare.
        if order.replay and verdict.packs:
            difference = replayed(scene.workers.configuration, *scene.replay_options)
            # A recount of uploads misses reports that workers rejected as too late, so those must be all.
            verdict = replace(verdict, replayed=abs(difference - verdict.late_reports))
        return Outcome(verdict, "" if verdict.exact else scene.describe())
    except (RunError, KafkaError, BrokerError, OSError) as error:
        raise RunError(f"{error!r}\n{scene.describe()}") from error
    finally:
        broker.resume()
        broker.start()
        scene.stop()
        delete_topics(broker.bootstrap_servers, scene.topics)


def _play(scene: Scene) -> None:
    """Begin, inject the fault under load, and wait until all is counted."""
    scene.begin()
    threads = [*scene.senders, scene.service]
    try:
        for thread in threads:
            thread.start()
        stage = scene.stage()
        scene.fault.act(stage)
        stage.rest(stage.left, stage.left)
        for sender in scene.senders:
            sender.stopped.set()
        for sender in scene.senders:
            sender.join()
        scene.drain()
    finally:
        threads = [*scene.senders, scene.service]
        for thread in threads:
            thread.stopped.set()
    scene.service.join()
    if errors := [thread.error for thread in threads if thread.error]:
        raise RunError(f"load or sampler failed: {errors!r}")


def replayed(configuration: Configuration, *options: str) -> int:
    """Return the difference that `deniable replay` prints; RunError with what it says if it prints none."""
    command = [sys.executable, "-m", "deniable", "replay", "--config", str(configuration.path), *options]
    ended = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=REPLAY_SECONDS, check=False
    )
    label, _, number = ended.stdout.strip().partition(": ")
    if label != "difference":
        raise RunError(f"replay: {ended.stdout}{ended.stderr}")
    return int(number.replace(",", ""))
