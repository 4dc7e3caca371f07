"""One turn of each fault, which is over when the function returns."""

import signal
import time

from tests.chaos.faults.stage import Stage
from tests.chaos.processes.fault_points import CHECKPOINT_POINTS, POINTS
from tests.support.processes import wait_until

BROKER_PAUSE_SECONDS = 20.0
STOP_SECONDS = 30.0  # for a worker to end after SIGTERM; 10 on a machine that is not overloaded
READY_SECONDS = 120.0
RECORD_BYTES = 1_048_588
HOUR = 3600.0


def kill(stage: Stage) -> None:
    stage.replace(stage.victim(), signal.SIGKILL)


def terminate(stage: Stage) -> None:
    stage.replace(stage.victim(), signal.SIGTERM)


def roll(stage: Stage) -> None:
    """Replace workers one by one; wait for each replacement to be ready before the next."""
    for worker in list(stage.workers.alive):
        stage.workers.drain(worker, STOP_SECONDS)
        successor = stage.workers.start()
        if not wait_until(lambda new=successor: new.ready, READY_SECONDS):
            stage.workers.missed.append(successor)


def end(stage: Stage) -> None:
    """End a worker by SIGTERM or SIGKILL, and start another."""
    stage.replace(stage.victim(), stage.chance.choice([signal.SIGTERM, signal.SIGKILL]))


def pause(stage: Stage) -> None:
    """Suspend a worker, like its machine; when it continues, others own its partitions."""
    worker = stage.victim()
    worker.signal(signal.SIGSTOP)
    stage.sleep_through_session(worker)


def scale(stage: Stage) -> None:
    """Scale from one worker to three and back to one."""
    stage.workers.start()
    stage.rest(0, 2)
    stage.workers.start()
    stage.rest(5, 9)
    for number in (signal.SIGTERM, stage.chance.choice([signal.SIGTERM, signal.SIGKILL])):
        stage.workers.end(stage.victim(), number)
        stage.rest(1, 5)


def kill_broker(stage: Stage) -> None:
    stage.broker.kill()
    stage.rest(0, 4)
    stage.broker.start()


def pause_broker(stage: Stage) -> None:
    stage.broker.pause()
    time.sleep(BROKER_PAUSE_SECONDS)
    stage.broker.resume()


def kill_at(stage: Stage, point: str) -> None:
    worker = stage.strike(point, "kill")
    if worker:
        stage.replace(worker, signal.SIGKILL)


def pause_at(stage: Stage, point: str) -> None:
    """Pause a worker inside a transaction or an estimate; it continues when another owns its partitions."""
    worker = stage.strike(point, "pause")
    if worker:
        stage.sleep_through_session(worker)


def strike_anywhere(stage: Stage) -> None:
    stage.chance.choice([kill_at, pause_at])(stage, stage.chance.choice(POINTS))


def fail_checkpoint(stage: Stage) -> None:
    """Fail a checkpoint while its worker continues: records fetched meanwhile must be fetched again."""
    stage.strike(stage.chance.choice(CHECKPOINT_POINTS), "fail")


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
    worker = stage.victim()
    stage.workers.delete_data(worker)
    stage.rest(1, 3)
    stage.replace(worker, stage.chance.choice([signal.SIGTERM, signal.SIGKILL]))


def shift_clock(stage: Stage) -> None:
    """Start a worker whose clock is an hour ahead or behind; end the oldest one."""
    stage.workers.start("--clock", str(stage.chance.choice([HOUR, -HOUR])))
    stage.rest(4, 8)
    if len(stage.workers.alive) > 2:
        stage.workers.end(stage.workers.alive[0], signal.SIGTERM)
