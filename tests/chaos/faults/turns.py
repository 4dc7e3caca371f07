"""The single acts that faults consist of. A turn is over when it returns."""

import signal
import time
from collections.abc import Callable, Sequence

from tests.chaos.faults.stage import Stage
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.worker_points import CHECKPOINT_POINTS, POINTS
from tests.support.processes import wait_until

Turn = Callable[[Stage], None]

BROKER_PAUSE_SECONDS = 20.0
STOP_SECONDS = 60.0  # for a worker to end after SIGTERM; 10 on a machine that is not overloaded
READY_SECONDS = 120.0
RECORD_BYTES = 1_048_588
HOUR = 3600.0
TAKEN_OVER_SECONDS = 12.0  # in which a relay has the partitions of another one that was killed
RELAY_STEPS = ("before", "in", "after", "marker")


def replace(kind: str, *numbers: signal.Signals) -> Turn:
    """Return the turn that ends a process of a fleet by one of these signals, and starts another."""

    def turn(stage: Stage) -> None:
        fleet = stage.fleet(kind)
        stage.replace(fleet, stage.victim(fleet), stage.chance.choice(numbers))

    return turn


def kill_at(kind: str, points: Sequence[str], most_passes: int = 1) -> Turn:
    """Return the turn that kills a process as it passes one of these points, and starts another."""

    def turn(stage: Stage) -> None:
        fleet, chance = stage.fleet(kind), stage.chance
        process = stage.strike(fleet, chance.choice(points), "kill", chance.randint(1, most_passes))
        if process:
            stage.replace(fleet, process, signal.SIGKILL)

    return turn


def pause_at(point: str) -> Turn:
    """Return the turn that pauses a worker in a transaction or an estimate until another has taken over."""

    def turn(stage: Stage) -> None:
        worker = stage.strike(stage.workers, point, "pause")
        if worker:
            stage.sleep_through_session(worker)

    return turn


def pause(kind: str, most_seconds: float, may_take_all: bool = False) -> Turn:
    """Return the turn that pauses a process of a fleet, or perhaps all, for a while."""

    def turn(stage: Stage) -> None:
        fleet = stage.fleet(kind)
        takes_all = may_take_all and stage.chance.random() < 0.5
        paused = list(fleet.alive) if takes_all else [stage.victim(fleet)]
        for process in paused:
            process.signal(signal.SIGSTOP)
        time.sleep(stage.chance.uniform(0.5, most_seconds))
        for process in paused:
            process.signal(signal.SIGCONT)

    return turn


def stop_broker(least_seconds: float, most_seconds: float) -> Turn:
    """Return the turn that kills the broker, and starts it after a while."""
    return _without_broker(ChaosBroker.kill, ChaosBroker.start, least_seconds, most_seconds)


def pause_broker(least_seconds: float, most_seconds: float) -> Turn:
    """Return the turn that leaves the broker reachable and silent for a while."""
    return _without_broker(ChaosBroker.pause, ChaosBroker.resume, least_seconds, most_seconds)


def _without_broker(
    leave: Callable[[ChaosBroker], object],
    come_back: Callable[[ChaosBroker], object],
    least_seconds: float,
    most_seconds: float,
) -> Turn:
    def turn(stage: Stage) -> None:
        leave(stage.broker)
        time.sleep(stage.chance.uniform(least_seconds, most_seconds))
        come_back(stage.broker)

    return turn


kill = replace("workers", signal.SIGKILL)
terminate = replace("workers", signal.SIGTERM)
end = replace("workers", signal.SIGTERM, signal.SIGKILL)
kill_edge = replace("edges", signal.SIGKILL)
kill_edge_before_answers = kill_at("edges", ["before-answers"], most_passes=60)
kill_relay = replace("relays", signal.SIGKILL)
kill_relay_at_step = kill_at("relays", RELAY_STEPS, most_passes=8)


def kill_relays_before_close(stage: Stage) -> None:
    """Kill a relay, or all, shortly before a window closes; they come back at once, or another takes over."""
    fleet, takes_all = stage.relays, stage.chance.random() < 0.5
    time.sleep(_until_before_close(stage, stage.chance.uniform(0.0, 1.5)))
    victims = list(fleet.alive) if takes_all else [stage.victim(fleet)]
    for relay in victims:
        fleet.end(relay, signal.SIGKILL)
    if not takes_all and stage.chance.random() < 0.5:
        time.sleep(TAKEN_OVER_SECONDS)
    fleet.keep_running(2)


def _until_before_close(stage: Stage, seconds: float) -> float:
    """Return the time until so many seconds before relays close a window."""
    configuration = stage.workers.configuration
    collection = configuration.collections[0]
    closes_after = collection.grace_seconds - configuration.relay.delivery_seconds
    past = (time.time() + seconds - closes_after) % collection.window_seconds
    return collection.window_seconds - past


def roll(stage: Stage) -> None:
    """Replace workers one by one; wait for each replacement to be ready before the next."""
    workers = list(stage.workers.alive)
    wait_until(lambda: all(worker.ready for worker in workers), READY_SECONDS)
    for worker in workers:
        stage.workers.drain(worker, STOP_SECONDS)
        successor = stage.workers.start()
        if not wait_until(lambda new=successor: new.ready, READY_SECONDS):
            stage.workers.missed.append(successor)


def pause_past_session(stage: Stage) -> None:
    """Suspend a worker, like its machine; when it continues, others own its partitions."""
    worker = stage.victim(stage.workers)
    worker.signal(signal.SIGSTOP)
    stage.sleep_through_session(worker)


def scale(stage: Stage) -> None:
    """Scale from one worker to three and back to one."""
    workers = stage.workers
    workers.start()
    stage.rest(0, 2)
    workers.start()
    stage.rest(5, 9)
    for number in (signal.SIGTERM, stage.chance.choice([signal.SIGTERM, signal.SIGKILL])):
        workers.end(stage.victim(workers), number)
        stage.rest(1, 5)


def strike_anywhere(stage: Stage) -> None:
    """Kill or pause a worker at a point of a checkpoint or an estimate."""
    point = stage.chance.choice(POINTS)
    stage.chance.choice([kill_at("workers", [point]), pause_at(point)])(stage)


def fail_checkpoint(stage: Stage) -> None:
    """Fail a checkpoint while its worker continues: records fetched meanwhile must be fetched again."""
    stage.strike(stage.workers, stage.chance.choice(CHECKPOINT_POINTS), "fail")


def fail_or_end(stage: Stage) -> None:
    """Inject a fault between a window's expiry and the deletion of its rows."""
    stage.chance.choice([fail_checkpoint, end, strike_anywhere])(stage)


def refuse_records(stage: Stage) -> None:
    """Make the broker refuse all records of one topic for some seconds, as too large."""
    topic = _written(stage)
    stage.broker.limit_records(topic, 100)
    stage.rest(1, 5)
    stage.broker.limit_records(topic, RECORD_BYTES)


def withdraw_permission(stage: Stage) -> None:
    """Forbid all to write to one topic for some seconds."""
    topic = _written(stage)
    stage.broker.forbid_writing(topic)
    stage.rest(1, 5)
    stage.broker.allow_writing(topic)


def _written(stage: Stage) -> str:
    """Choose a topic that workers write to; most often `state`."""
    topics = stage.workers.configuration.topics
    others = [topics.counts, topics.rejected, topics.estimates, topics.windows]
    return stage.chance.choice([topics.state, topics.state, *others])


def delete_data(stage: Stage) -> None:
    """Delete the folder of a worker, then end it."""
    worker = stage.victim(stage.workers)
    stage.workers.delete_data(worker)
    stage.rest(1, 3)
    stage.replace(stage.workers, worker, stage.chance.choice([signal.SIGTERM, signal.SIGKILL]))


def shift_clock(stage: Stage) -> None:
    """Start a worker whose clock is an hour ahead or behind; end the oldest one."""
    workers = stage.workers
    workers.start("--clock", str(stage.chance.choice([HOUR, -HOUR])))
    stage.rest(4, 8)
    if len(workers.alive) > 2:
        workers.end(workers.alive[0], signal.SIGTERM)
