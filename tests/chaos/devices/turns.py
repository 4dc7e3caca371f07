"""One turn of each fault on the path of devices, which is over when the function returns."""

import signal
import time

from tests.chaos.devices.stage import PathStage

SESSION_SECONDS = 6.0  # after which a relay's partitions move to another one
TAKEN_OVER_SECONDS = 12.0
STEPS = ("before", "in", "after", "marker")


def kill_edge(stage: PathStage) -> None:
    seat = stage.edge()
    seat.end()
    stage.rest(0, 2)
    stage.edges.start(seat)


def kill_edge_before_answers(stage: PathStage) -> None:
    """Kill an edge when Kafka has acknowledged a frame, before it has answered any of its uploads."""
    seat = stage.edge()
    seat.end(signal.SIGTERM)
    stage.edges.start_mortal(seat, stage.chance.randint(1, 60))
    seat.await_death()
    stage.edges.start(seat)


def kill_relay(stage: PathStage) -> None:
    seat = stage.relay()
    seat.end()
    stage.rest(0, 2)
    stage.relays.start(seat)


def kill_relay_at_step(stage: PathStage) -> None:
    """Kill a relay before, in or after the sending of a batch, or before a marker."""
    seat, chance = stage.relay(), stage.chance
    seat.end(signal.SIGTERM)
    stage.relays.start(seat, point=chance.choice(STEPS), batches=chance.randint(1, 8))
    seat.await_death()
    stage.rest(0, 2)
    stage.relays.start(seat)


def kill_relay_after_sending(stage: PathStage) -> None:
    """Kill a relay when Kafka has all packs of a batch, before the position is committed."""
    seat = stage.relay()
    seat.end(signal.SIGTERM)
    stage.relays.start(seat, point="after", batches=2)
    seat.await_death()
    stage.relays.start(seat)


def kill_relay_before_close(stage: PathStage) -> None:
    """Kill a relay shortly before a window closes; it comes back at once, or the other one takes over."""
    seat = stage.relay()
    stage.sleep_until_before_close(stage.chance.uniform(0.0, 1.5))
    seat.end()
    if stage.chance.random() < 0.5:
        time.sleep(TAKEN_OVER_SECONDS)
    stage.relays.start(seat)


def kill_both_relays_before_close(stage: PathStage) -> None:
    """Kill all relays shortly before a window closes; they come back at once."""
    stage.sleep_until_before_close(stage.chance.uniform(0.0, 1.5))
    for seat in stage.relays.seats:
        seat.end()
    for seat in stage.relays.seats:
        stage.relays.start(seat)


def pause_relays(stage: PathStage) -> None:
    """Pause one relay past its session, or all of them for a while."""
    seats = stage.relays.seats if stage.chance.random() < 0.5 else [stage.relay()]
    for seat in seats:
        seat.send(signal.SIGSTOP)
    time.sleep(stage.chance.uniform(2, SESSION_SECONDS + 3))
    for seat in seats:
        seat.send(signal.SIGCONT)


def pause_edge(stage: PathStage) -> None:
    """Pause an edge for longer than it lets an upload wait, or for a moment."""
    seat = stage.edge()
    seat.send(signal.SIGSTOP)
    time.sleep(stage.chance.uniform(0.5, 6))
    seat.send(signal.SIGCONT)


def pause_broker(stage: PathStage) -> None:
    """Pause the broker for longer than an edge lets an upload wait, or for a moment."""
    stage.broker.pause()
    time.sleep(stage.chance.uniform(0.5, 8))
    stage.broker.resume()


def stop_broker(stage: PathStage, seconds: float) -> None:
    """Kill the broker; start it after a while."""
    stage.broker.kill()
    time.sleep(seconds)
    stage.broker.start()
