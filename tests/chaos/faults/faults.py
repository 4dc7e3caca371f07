"""The faults by name. Each runs until the load ends; one seed decides times, order and victims."""

import math
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.chaos.faults import turns
from tests.chaos.faults.stage import MOST_PAUSE_SECONDS, Stage
from tests.chaos.processes import network
from tests.chaos.processes.collection_setup import FLASH_GRACE_SECONDS, with_one_more, without_it
from tests.chaos.processes.fault_points import POINTS
from tests.support.processes import wait_until

Act = Callable[[Stage], None]

AWAY_SECONDS = 300.0
ROLL_SECONDS = 20.0  # in which three workers are replaced


@dataclass(frozen=True)
class Fault:
    """A fault and its runs.

    Parameters
    ----------
    act : injects the fault until the load ends.
    workers : their number at the start.
    malformed : share of malformed packs in the load.
    stranger : whether a foreign producer writes transactions, too.
    seconds : duration of the load.
    packs_per_second : of the load.
    seeds : number of runs.
    own_network : whether it needs a separate network.
    grace_seconds : of `flash`, the collection whose windows end before the run does.
    overdue_seconds : limit for each window's final estimate, after the end of its grace; inf for no limit;
        None if not checked.
    """

    act: Act
    workers: int = 2
    malformed: float = 0.0
    stranger: bool = False
    seconds: float = 60.0
    packs_per_second: int = 2000
    seeds: int = 5
    own_network: bool = False
    grace_seconds: int = FLASH_GRACE_SECONDS
    overdue_seconds: float | None = None


def repeated(turn: Act, least: float, most: float, enough: float = 6.0) -> Act:
    """Repeat a turn with rests in between; do not begin one with less than `enough` seconds left."""

    def act(stage: Stage) -> None:
        while stage.left > enough:
            stage.rest(least, most)
            turn(stage)

    return act


def at_points(turn: Callable[[Stage, str], None], enough: float) -> Act:
    """Strike at one point after the other; two seeds cover all points even if each reaches only three."""

    def act(stage: Stage) -> None:
        first = 3 * stage.seed % len(POINTS)
        for point in [*POINTS[first:], *POINTS[:first]]:
            stage.rest(1, 4)
            if stage.left < enough:
                return
            turn(stage, point)

    return act


def roll_out(stage: Stage) -> None:
    """Restart workers one by one with a file with one more collection; then send its packs."""
    stage.rest(5, 10)
    take_new_file(stage, signal.SIGTERM)
    RESTARTS(stage)


def take_new_file(stage: Stage, *how: signal.Signals) -> None:
    """Replace workers, ended by these signals, by ones with another collection; then send its packs."""
    later = with_one_more(stage.workers.configuration)
    stage.workers.configuration = later
    for worker in list(stage.workers.alive):
        stage.replace(worker, stage.chance.choice(how))
        stage.rest(2, 4)
    wait_until(lambda: all(worker.says("ledger open") for worker in stage.workers.alive), stage.left)
    stage.load.add(next(c for c in later.collections if c.name == "extra"))


def come_and_go(stage: Stage) -> None:
    """Add and retire a collection under load, each time by replacing workers one by one.

    Some of its packs are resent after it was retired.
    """
    stage.workers.configuration = later = with_one_more(stage.workers.configuration)
    stage.rest(2, 4)
    turns.roll(stage)
    extra = next(each for each in later.collections if each.name == "extra")
    stage.load.add(extra)
    stage.rest(4, 6)
    stage.load.remove(extra)
    stage.workers.retire(extra, without_it(later))
    turns.roll(stage)


def all_at_once(stage: Stage) -> None:
    """All faults in random order, some twice; every turn ends with at least two workers."""
    take_new_file(stage, signal.SIGTERM, signal.SIGKILL)
    turns.shift_clock(stage)
    while stage.left > MOST_PAUSE_SECONDS:
        stage.rest(0, 3)
        stage.chance.choice(ALL)(stage)
        stage.workers.keep_running(2)


def away(stage: Stage) -> None:
    """A broker is away for long, or reachable and silent; afterwards all workers still run."""
    stage.rest(15, 20)
    if stage.seed % 2:
        stage.broker.kill()
    else:
        stage.broker.pause()
    time.sleep(AWAY_SECONDS)
    if stage.seed % 2:
        stage.broker.start()
    else:
        stage.broker.resume()


def unreachable(stage: Stage) -> None:
    """All packets are dropped; afterwards all workers still run."""
    stage.rest(15, 20)
    with network.dropped():
        time.sleep(AWAY_SECONDS)


def mixed(stage: Stage) -> None:
    """Run the most informative faults, in an order by seed, for the tests."""
    for turn in stage.chance.sample(TELLING, len(TELLING)):
        stage.rest(1, 3)
        turn(stage)
        stage.workers.keep_running(2)


RESTARTS = repeated(turns.end, 8, 14)
ROLLS = repeated(turns.roll, 2, 4, enough=ROLL_SECONDS)
TELLING = [
    turns.kill,
    turns.pause,
    turns.terminate,
    turns.kill_broker,
    turns.strike_anywhere,
    turns.refuse_records,
]
ALL = [
    *TELLING,
    turns.scale,
    turns.pause_broker,
    turns.fail_checkpoint,
    turns.withdraw_permission,
    turns.delete_data,
    turns.shift_clock,
]
#: In all of them every tenth pack is sent twice, a third of those 20 s later.
FAULTS: Mapping[str, Fault] = {
    "kill-9": Fault(repeated(turns.kill, 6, 14)),
    "sigterm": Fault(repeated(turns.terminate, 2, 6)),
    "rolling-restart": Fault(ROLLS, workers=3, grace_seconds=10, overdue_seconds=10, seeds=3),
    "zombie": Fault(repeated(turns.pause, 2, 5, enough=MOST_PAUSE_SECONDS), workers=3),
    "scale-1-3-1": Fault(repeated(turns.scale, 0, 1), workers=1),
    "broker-kill-9": Fault(repeated(turns.kill_broker, 5, 15, enough=12)),
    "broker-pause": Fault(repeated(turns.pause_broker, 3, 9, enough=turns.BROKER_PAUSE_SECONDS)),
    "broker-away-5-min": Fault(away, seconds=360.0, packs_per_second=200, seeds=2),
    "broker-unreachable-5-min": Fault(
        unreachable, seconds=360.0, packs_per_second=200, seeds=1, own_network=True
    ),
    "resent": Fault(RESTARTS),
    "stranger": Fault(RESTARTS, stranger=True),
    "malformed-5": Fault(RESTARTS, malformed=0.05),
    "malformed-50": Fault(RESTARTS, malformed=0.5),
    "malformed-100": Fault(RESTARTS, malformed=1.0),
    "checkpoint-kill": Fault(at_points(turns.kill_at, 6)),
    "checkpoint-pause": Fault(at_points(turns.pause_at, 12), workers=3),
    "checkpoint-fail": Fault(repeated(turns.fail_checkpoint, 2, 4)),
    "record-too-large": Fault(repeated(turns.refuse_records, 3, 6)),
    "permission": Fault(repeated(turns.withdraw_permission, 3, 6)),
    "data-folder": Fault(repeated(turns.delete_data, 2, 6)),
    "one-more-collection": Fault(roll_out),
    "collection-retired": Fault(come_and_go, overdue_seconds=math.inf, seeds=3),
    "dying-windows": Fault(repeated(turns.fail_or_end, 1, 4), seconds=150.0),
    "clock": Fault(repeated(turns.shift_clock, 2, 4)),
    "all-at-once": Fault(all_at_once, workers=3, malformed=0.05, stranger=True),
    "mixed": Fault(mixed, malformed=0.05, stranger=True),
}
