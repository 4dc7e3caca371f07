"""The faults. Each goes on until the load ends; one seed decides moments, order and victims."""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.chaos.collection_setup import with_one_more
from tests.chaos.fault_points import CHECKPOINT_POINTS, POINTS
from tests.chaos.stage import SESSION_SECONDS, Stage
from tests.deploy.processes import wait_until

BROKER_PAUSE_SECONDS = 20.0
RECORD_BYTES = 1_048_588
HOUR = 3600.0
ENOUGH_SECONDS = 6.0  # no fault begins later than this before the end of the load


def kill(stage: Stage) -> None:
    while stage.left > ENOUGH_SECONDS:
        stage.rest(2, 10)
        stage.replace(stage.victim(), signal.SIGKILL)


def terminate(stage: Stage) -> None:
    while stage.left > ENOUGH_SECONDS:
        stage.rest(2, 6)
        stage.replace(stage.victim(), signal.SIGTERM)


def pause(stage: Stage) -> None:
    """A suspended machine: by the time it goes on, others own its partitions."""
    while stage.left > SESSION_SECONDS:
        stage.rest(2, 5)
        worker = stage.victim()
        worker.signal(signal.SIGSTOP)
        stage.sleep_through_session(worker)


def scale(stage: Stage) -> None:
    """From one worker to three and back to one, over and over."""
    while stage.left > ENOUGH_SECONDS:
        stage.workers.start()
        stage.rest(0, 2)
        stage.workers.start()
        stage.rest(5, 9)
        for number in (signal.SIGTERM, stage.chance.choice([signal.SIGTERM, signal.SIGKILL])):
            stage.workers.end(stage.victim(), number)
            stage.rest(1, 5)


def kill_broker(stage: Stage) -> None:
    while stage.left > 2 * ENOUGH_SECONDS:
        stage.rest(4, 10)
        stage.broker.kill()
        stage.rest(0, 4)
        stage.broker.start()


def pause_broker(stage: Stage) -> None:
    while stage.left > BROKER_PAUSE_SECONDS:
        stage.rest(3, 9)
        stage.broker.pause()
        time.sleep(BROKER_PAUSE_SECONDS)
        stage.broker.resume()
        stage.rest(5, 5)


def nothing(stage: Stage) -> None:
    """Only what the load does."""
    stage.rest(stage.left, stage.left)


def restart_under_load(stage: Stage) -> None:
    """A change of owner now and then, for the sake of second copies that come after it."""
    while stage.left > ENOUGH_SECONDS:
        stage.rest(8, 14)
        stage.replace(stage.victim(), stage.chance.choice([signal.SIGTERM, signal.SIGKILL]))


def kill_at_points(stage: Stage) -> None:
    """Two seeds in a row pass all points."""
    for point in _points_in_turn(stage):
        stage.rest(1, 5)
        if stage.left < ENOUGH_SECONDS:
            return
        worker = stage.strike(point, "kill")
        if worker:
            stage.replace(worker, signal.SIGKILL)


def pause_at_points(stage: Stage) -> None:
    """Stopped inside a transaction, or with its records in hand, and awake when another one owns them."""
    for point in _points_in_turn(stage):
        stage.rest(1, 3)
        if stage.left < SESSION_SECONDS:
            return
        worker = stage.strike(point, "pause")
        if worker:
            stage.sleep_through_session(worker)


def fail_at_points(stage: Stage) -> None:
    """A checkpoint is lost while its worker goes on: what was fetched meanwhile must be fetched again."""
    while stage.left > ENOUGH_SECONDS:
        stage.rest(2, 4)
        stage.strike(stage.chance.choice(CHECKPOINT_POINTS), "fail")


def refuse_records(stage: Stage) -> None:
    """The broker takes no record of a ledger for some seconds: all are too large."""
    state = stage.workers.configuration.topics.state
    while stage.left > ENOUGH_SECONDS:
        stage.rest(3, 6)
        stage.broker.limit_records(state, 100)
        stage.rest(1, 5)
        stage.broker.limit_records(state, RECORD_BYTES)


def withdraw_permission(stage: Stage) -> None:
    state = stage.workers.configuration.topics.state
    while stage.left > ENOUGH_SECONDS:
        stage.rest(3, 6)
        stage.broker.forbid_writing(state)
        stage.rest(1, 5)
        stage.broker.allow_writing(state)


def delete_data(stage: Stage) -> None:
    while stage.left > ENOUGH_SECONDS:
        stage.rest(2, 6)
        worker = stage.victim()
        stage.workers.delete_data(worker)
        stage.rest(1, 3)
        stage.replace(worker, stage.chance.choice([signal.SIGTERM, signal.SIGKILL]))


def roll_out(stage: Stage) -> None:
    """All workers, one after the other, get a file with one more collection; then its packs come."""
    stage.rest(5, 10)
    later = with_one_more(stage.workers.configuration)
    stage.workers.configuration = later
    for worker in list(stage.workers.alive):
        stage.replace(worker, signal.SIGTERM)
        stage.rest(2, 5)
    wait_until(lambda: all(worker.says("ledger open") for worker in stage.workers.alive), stage.left)
    stage.load.add(next(c for c in later.collections if c.name == "extra"))
    restart_under_load(stage)


def shift_clocks(stage: Stage) -> None:
    """One worker lives an hour ahead, another an hour behind, and they follow each other."""
    while stage.left > ENOUGH_SECONDS:
        stage.workers.start("--clock", str(stage.chance.choice([HOUR, -HOUR])))
        stage.rest(4, 8)
        if len(stage.workers.alive) > 2:
            stage.workers.end(stage.workers.alive[0], signal.SIGKILL)
        stage.rest(2, 4)


def all_at_once(stage: Stage) -> None:
    """Whatever can happen, in any order, some of it twice; every turn ends with two workers or more."""
    stage.workers.start("--clock", str(stage.chance.choice([HOUR, -HOUR])))
    while stage.left > 2 * ENOUGH_SECONDS:
        stage.rest(0, 3)
        stage.chance.choice([_kill, _terminate, _pause, _kill_broker, _point, _point, _refuse, _forbid])(
            stage
        )
        while len(stage.workers.alive) < 2:
            stage.workers.start()


def mixed(stage: Stage) -> None:
    """The most telling ones in an order of the seed: what the tests run."""
    turns = [_kill, _pause, _kill_broker, _point, _refuse, _terminate]
    for turn in stage.chance.sample(turns, len(turns)):
        stage.rest(1, 3)
        turn(stage)


def _kill(stage: Stage) -> None:
    stage.replace(stage.victim(), signal.SIGKILL)


def _terminate(stage: Stage) -> None:
    stage.replace(stage.victim(), signal.SIGTERM)


def _pause(stage: Stage) -> None:
    worker = stage.victim()
    worker.signal(signal.SIGSTOP)
    stage.sleep_through_session(worker)


def _kill_broker(stage: Stage) -> None:
    stage.broker.kill()
    stage.rest(0, 2)
    stage.broker.start()


def _point(stage: Stage) -> None:
    action = stage.chance.choice(["kill", "pause"])
    worker = stage.strike(stage.chance.choice(POINTS), action)
    if worker and action == "pause":
        stage.sleep_through_session(worker)
    elif worker:
        stage.replace(worker, signal.SIGKILL)


def _refuse(stage: Stage) -> None:
    state = stage.workers.configuration.topics.state
    stage.broker.limit_records(state, 100)
    stage.rest(1, 3)
    stage.broker.limit_records(state, RECORD_BYTES)


def _forbid(stage: Stage) -> None:
    state = stage.workers.configuration.topics.state
    stage.broker.forbid_writing(state)
    stage.rest(1, 3)
    stage.broker.allow_writing(state)


def _points_in_turn(stage: Stage) -> list[str]:
    first = 3 * stage.seed % len(POINTS)
    return [*POINTS[first:], *POINTS[:first]]


@dataclass(frozen=True)
class Fault:
    """A fault, how many workers it begins with, and what the load adds to it."""

    act: Callable[[Stage], None]
    workers: int = 2
    malformed: float = 0.0
    stranger: bool = False


FAULTS: Mapping[str, Fault] = {
    "kill-9": Fault(kill),
    "sigterm": Fault(terminate),
    "zombie": Fault(pause, workers=3),
    "scale-1-3-1": Fault(scale, workers=1),
    "broker-kill-9": Fault(kill_broker),
    "broker-pause": Fault(pause_broker),
    "resent": Fault(restart_under_load),
    "stranger": Fault(restart_under_load, stranger=True),
    "malformed-5": Fault(restart_under_load, malformed=0.05),
    "malformed-50": Fault(restart_under_load, malformed=0.5),
    "malformed-100": Fault(restart_under_load, malformed=1.0),
    "checkpoint-kill": Fault(kill_at_points),
    "checkpoint-pause": Fault(pause_at_points, workers=3),
    "checkpoint-fail": Fault(fail_at_points),
    "record-too-large": Fault(refuse_records),
    "permission": Fault(withdraw_permission),
    "data-folder": Fault(delete_data),
    "one-more-collection": Fault(roll_out),
    "clock": Fault(shift_clocks),
    "all-at-once": Fault(all_at_once, workers=3, malformed=0.05, stranger=True),
    "mixed": Fault(mixed, malformed=0.05, stranger=True),
}
