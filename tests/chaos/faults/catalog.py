"""The faults by name. Each runs until the load ends; one seed decides times, order and victims."""

import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from tests.chaos.faults import cluster_turns, turns
from tests.chaos.faults.fault import ClusterFault, Fault, PathFault
from tests.chaos.faults.stage import MAX_PAUSE_SECONDS, Stage
from tests.chaos.faults.turns import Turn
from tests.chaos.judging import stored
from tests.chaos.processes import network
from tests.chaos.processes.collection_setup import with_one_more, without_it
from tests.chaos.processes.worker_points import POINTS
from tests.support.processes import wait_until

AWAY_SECONDS = 300.0
ROLL_SECONDS = 20.0  # in which three workers are replaced
RECOVERY_SECONDS = 14.0  # in which relays begin again, all of them as well


def repeated(*choices: Turn, least: float = 1.0, most: float = 4.0, enough: float = 6.0) -> Turn:
    """Repeat turns, chosen at random, with rests between; begin none with less than `enough` seconds left."""

    def act(stage: Stage) -> None:
        while stage.left > enough:
            stage.rest(least, most)
            stage.chance.choice(choices)(stage)

    return act


def each_once(choices: Sequence[Turn], most: float) -> Turn:
    """Run each turn once, in an order by seed, with rests in between, however long that takes."""

    def act(stage: Stage) -> None:
        for turn in stage.chance.sample(choices, len(choices)):
            stage.rest(most / 3, most)
            turn(stage)
            stage.workers.keep_running(2)

    return act


def at_points(turn: Callable[[str], Turn], enough: float) -> Turn:
    """Strike at one point after the other; two seeds cover all points even if each reaches only three."""

    def act(stage: Stage) -> None:
        first = 3 * stage.seed % len(POINTS)
        for point in [*POINTS[first:], *POINTS[:first]]:
            stage.rest(1, 4)
            if stage.left < enough:
                return
            turn(point)(stage)

    return act


def once(turn: Turn, least: float, most: float) -> Turn:
    """Run a turn once, after a while."""

    def act(stage: Stage) -> None:
        stage.rest(least, most)
        turn(stage)

    return act


def roll_out(stage: Stage) -> None:
    """Restart workers one by one with a file with one more collection; then send its packs."""
    stage.rest(5, 10)
    take_new_file(stage, signal.SIGTERM)
    RESTARTS(stage)


def take_new_file(stage: Stage, *how: signal.Signals) -> None:
    """Replace workers, ended by these signals, by ones with another collection; then send its packs."""
    workers = stage.workers
    workers.configuration = later = with_one_more(workers.configuration)
    for worker in list(workers.alive):
        stage.replace(workers, worker, stage.chance.choice(how))
        stage.rest(2, 4)
    wait_until(lambda: all(worker.says("ledger open") for worker in workers.alive), stage.left)
    stage.load.add(later.collection("extra"))


def come_and_go(stage: Stage) -> None:
    """Add and retire a collection under load, each time by replacing workers one by one.

    Some of its packs are resent after it was retired.
    """
    stage.workers.configuration = later = with_one_more(stage.workers.configuration)
    stage.rest(2, 4)
    turns.roll(stage)
    extra = later.collection("extra")
    stage.load.add(extra)
    stage.rest(4, 6)
    stage.load.remove(extra)
    stage.workers.retire(extra, without_it(later))
    turns.roll(stage)


def all_at_once(stage: Stage) -> None:
    """All faults in random order, some twice; every turn ends with at least two workers."""
    take_new_file(stage, signal.SIGTERM, signal.SIGKILL)
    turns.shift_clock(stage)
    while stage.left > MAX_PAUSE_SECONDS:
        stage.rest(0, 3)
        stage.chance.choice(ALL)(stage)
        stage.workers.keep_running(2)


def away(stage: Stage) -> None:
    """A broker is away for long, or reachable and silent; afterwards all workers still run."""
    stop = turns.stop_broker if stage.seed % 2 else turns.pause_broker
    stop(AWAY_SECONDS, AWAY_SECONDS)(stage)


def unreachable(stage: Stage) -> None:
    """All packets are dropped; afterwards all workers still run."""
    with network.dropped():
        time.sleep(AWAY_SECONDS)


def mixed(stage: Stage) -> None:
    """Run the most informative turns once, in an order by seed, and go on until a window is estimated."""
    each_once([*TELLING, turns.roll], 3)(stage)
    servers, topics = stage.broker.bootstrap_servers, stage.workers.configuration.topics
    wait_until(lambda: bool(stored.finals(servers, topics)))


def uploads_away(seconds: float) -> PathFault:
    """The broker is away for far longer than windows have grace, from any moment of a window on."""
    return PathFault(
        once(turns.stop_broker(seconds, seconds), 4, 9),
        delivery_seconds=2,
        rate=100,
        is_away=True,
        seconds=seconds + 25,
    )


RESTARTS = repeated(turns.end, least=8, most=14)
ROLLS = repeated(turns.roll, least=2, most=4, enough=ROLL_SECONDS)
KILL_BROKER = turns.stop_broker(0, 4)
PAUSE_BROKER = turns.pause_broker(turns.BROKER_PAUSE_SECONDS, turns.BROKER_PAUSE_SECONDS)
TELLING = [
    turns.kill,
    turns.pause_past_session,
    turns.terminate,
    KILL_BROKER,
    turns.strike_anywhere,
    turns.refuse_records,
]
ALL = [
    *TELLING,
    turns.scale,
    PAUSE_BROKER,
    turns.fail_checkpoint,
    turns.withdraw_permission,
    turns.delete_data,
    turns.shift_clock,
]
EDGE_KILLS = repeated(turns.kill_edge, least=4, most=8)
KILLS = repeated(turns.kill_edge, turns.kill_relay, most=6)
TELLING_ON_PATH = [
    turns.kill_edge,
    turns.kill_edge_before_answers,
    turns.kill_relay,
    turns.kill_relay_at_step,
    turns.kill,
]
#: In those of workers every tenth pack is sent twice, a third of those 20 s later.
FAULTS: Mapping[str, Fault] = {
    "kill-9": Fault(repeated(turns.kill, least=6, most=14)),
    "sigterm": Fault(repeated(turns.terminate, least=2, most=6)),
    "rolling-restart": Fault(ROLLS, workers=3, grace_seconds=10, overdue_seconds=10, seeds=3),
    "zombie": Fault(repeated(turns.pause_past_session, least=2, most=5, enough=MAX_PAUSE_SECONDS), workers=3),
    "scale-1-3-1": Fault(repeated(turns.scale, least=0, most=1), workers=1),
    "broker-kill-9": Fault(repeated(KILL_BROKER, least=5, most=15, enough=12)),
    "broker-pause": Fault(repeated(PAUSE_BROKER, least=3, most=9, enough=turns.BROKER_PAUSE_SECONDS)),
    "broker-away-5-min": Fault(once(away, 15, 20), seconds=360.0, rate=200, seeds=2),
    "broker-unreachable-5-min": Fault(
        once(unreachable, 15, 20), seconds=360.0, rate=200, seeds=1, own_network=True
    ),
    "resent": Fault(RESTARTS),
    "stranger": Fault(RESTARTS, stranger=True),
    "malformed-5": Fault(RESTARTS, malformed=0.05),
    "malformed-50": Fault(RESTARTS, malformed=0.5),
    "malformed-100": Fault(RESTARTS, malformed=1.0),
    "checkpoint-kill": Fault(at_points(lambda point: turns.kill_at("workers", [point]), 6)),
    "checkpoint-pause": Fault(at_points(turns.pause_at, 12), workers=3),
    "checkpoint-fail": Fault(repeated(turns.fail_checkpoint, least=2)),
    "record-too-large": Fault(repeated(turns.refuse_records, least=3, most=6)),
    "permission": Fault(repeated(turns.withdraw_permission, least=3, most=6)),
    "data-folder": Fault(repeated(turns.delete_data, least=2, most=6)),
    "one-more-collection": Fault(roll_out),
    "collection-retired": Fault(come_and_go, overdue_seconds=math.inf, seeds=3),
    "dying-windows": Fault(repeated(turns.fail_or_end), seconds=150.0),
    "clock": Fault(repeated(turns.shift_clock, least=2)),
    "all-at-once": Fault(all_at_once, workers=3, malformed=0.05, stranger=True),
    "mixed": Fault(mixed, malformed=0.05, stranger=True),
    "edge-kill-9": PathFault(repeated(turns.kill_edge, enough=4)),
    "edge-kill-before-answers": PathFault(repeated(turns.kill_edge_before_answers, most=2, enough=4)),
    "relay-kill-9": PathFault(repeated(turns.kill_relay, most=8, enough=4)),
    "relay-kill-in-steps": PathFault(repeated(turns.kill_relay_at_step, enough=4)),
    "relay-kill-before-close": PathFault(
        repeated(turns.kill_relays_before_close, least=RECOVERY_SECONDS, most=RECOVERY_SECONDS), seconds=80.0
    ),
    "relays-paused": PathFault(repeated(turns.pause("relays", 9, may_take_all=True), enough=4)),
    "relays-both-on-each": PathFault(KILLS, relay_options=("--assigned", "4")),
    "edges-paused": PathFault(repeated(turns.pause("edges", 6), enough=4)),
    "uploads-broker-paused": PathFault(repeated(turns.pause_broker(0.5, 8), enough=4)),
    "edge-and-relay-kill-9": PathFault(KILLS),
    "uploads-resent": PathFault(EDGE_KILLS, resent_later=True),
    "uploads-invalid-5": PathFault(EDGE_KILLS, rate=0, malformed=0.05),
    "uploads-invalid-50": PathFault(EDGE_KILLS, rate=0, malformed=0.5),
    "uploads-invalid-100": PathFault(EDGE_KILLS, rate=0, malformed=1.0),
    "bodies": PathFault(EDGE_KILLS, rude=12),
    "uploads-broker-away-30-s": uploads_away(30),
    "uploads-broker-away-100-s": uploads_away(100),
    "uploads-broker-away-5-min": uploads_away(AWAY_SECONDS),
    "partial-partition": ClusterFault(once(cluster_turns.isolate_leader(30), 5, 10)),
    "partial-partition-of-results": ClusterFault(
        once(cluster_turns.isolate_leader_of_results(60), 5, 10), seconds=90.0, overdue_seconds=50.0
    ),
    "slow-replica": ClusterFault(once(cluster_turns.slow_replica(45), 5, 10), seconds=75.0),
    "leader-paused": ClusterFault(repeated(cluster_turns.pause_leader(15), least=5, most=8, enough=25)),
    "coordinator-killed": ClusterFault(repeated(cluster_turns.kill_coordinator, least=4, most=8, enough=20)),
    "controller-killed": ClusterFault(repeated(cluster_turns.kill_controller, least=4, most=8, enough=20)),
    # Brokers may take as long again to recover: windows that are kept for a minute then expire unseen.
    "two-of-three-away": ClusterFault(
        once(cluster_turns.two_away(30), 5, 10), seconds=75.0, overdue_seconds=None
    ),
    "leaders-moved": ClusterFault(repeated(cluster_turns.move_leaders, least=2, most=6)),
    "brokers-rolled": ClusterFault(once(cluster_turns.roll, 5, 8), seconds=90.0),
    "disk-full": ClusterFault(once(cluster_turns.fill_disk(15), 5, 10)),
    "path-mixed": PathFault(
        each_once(TELLING_ON_PATH, 1.5),
        malformed=0.1,
        rude=4,
        resent_later=True,
        seconds=15.0,
    ),
}
