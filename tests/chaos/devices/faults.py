"""The faults on the path of devices, by name. One seed decides times, order and victims."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.config.sections import RelaySection
from tests.chaos.devices import turns
from tests.chaos.devices.stage import PathStage
from tests.chaos.faults import turns as worker_turns

Act = Callable[[PathStage], None]

DELIVERY_SECONDS = RelaySection().delivery_seconds
RECOVERY_SECONDS = 14.0  # in which relays begin again, all of them as well
OUTAGE_SECONDS = 20.0
LONG_OUTAGE_SECONDS = 300.0
LEAST_SECONDS = 2.0  # for a turn


@dataclass(frozen=True)
class PathFault:
    """A fault and its runs, with two edges, two relays and two workers.

    Parameters
    ----------
    act : injects the fault until the load ends.
    packs_per_second : uploads a second of all clients together; 0: as fast as they are answered.
    invalid : share of invalid uploads.
    rude : number of clients that send slow, cut and enormous requests.
    resent_later : whether resent uploads come up to three windows later, beyond the close of theirs.
    close_seconds : time after a window's end in which relays take its uploads.
    delivery_seconds : of the collection file; packs that come later than that after the close are too late.
    may_be_late : whether packs may come too late for the workers: it keeps relays from sending for longer.
    is_away : whether the broker is away for so long that edges must answer 503.
    order : for each relay; see `tests.support.relay.service_process`.
    seconds : duration of the load.
    seeds : number of runs.
    own_network : never.
    """

    act: Act
    packs_per_second: int = 200
    invalid: float = 0.0
    rude: int = 0
    resent_later: bool = False
    close_seconds: int = 4
    delivery_seconds: int = DELIVERY_SECONDS
    may_be_late: bool = False
    is_away: bool = False
    order: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 30.0
    seeds: int = 3
    own_network: bool = False


def repeated(*acts: Act, least: float = 1.0, most: float = 4.0, enough: float = 4.0) -> Act:
    """Repeat turns, chosen at random, with rests in between, until fewer than `enough` seconds are left."""

    def act(stage: PathStage) -> None:
        while stage.left > enough:
            stage.rest(least, most)
            stage.chance.choice(acts)(stage)
            stage.workers.keep_running(2)

    return act


def away(seconds: float) -> Act:
    """Let the broker be away once."""

    def act(stage: PathStage) -> None:
        stage.rest(4, 8)
        turns.stop_broker(stage, seconds)

    return act


def mixed(stage: PathStage) -> None:
    """Run each of the most informative turns once, in an order by seed, for the tests."""
    for turn in stage.chance.sample(TELLING, len(TELLING)):
        stage.rest(0.5, 1.5)
        if stage.left > LEAST_SECONDS:
            turn(stage)


KILLS = repeated(turns.kill_edge, turns.kill_relay, most=6.0)
EDGE_KILLS = repeated(turns.kill_edge, least=4.0, most=8.0)
TELLING: list[Act] = [
    turns.kill_edge,
    turns.kill_edge_before_answers,
    turns.kill_relay,
    turns.kill_relay_at_step,
    worker_turns.kill,
]
PATH_FAULTS: Mapping[str, PathFault] = {
    "edge-kill-9": PathFault(repeated(turns.kill_edge)),
    "edge-kill-before-answers": PathFault(repeated(turns.kill_edge_before_answers, most=2.0)),
    "relay-kill-9": PathFault(repeated(turns.kill_relay, most=8.0), may_be_late=True),
    "relay-kill-in-steps": PathFault(repeated(turns.kill_relay_at_step), may_be_late=True),
    "relay-kill-before-close": PathFault(
        repeated(
            turns.kill_relay_before_close,
            turns.kill_both_relays_before_close,
            least=RECOVERY_SECONDS,
            most=RECOVERY_SECONDS,
        ),
        seconds=80.0,
    ),
    "relays-paused": PathFault(repeated(turns.pause_relays), may_be_late=True),
    "relays-both-on-each": PathFault(KILLS, order={"assigned": True}),
    "edges-paused": PathFault(repeated(turns.pause_edge)),
    "uploads-broker-paused": PathFault(repeated(turns.pause_broker), may_be_late=True),
    "edge-and-relay-kill-9": PathFault(KILLS, may_be_late=True),
    "uploads-resent": PathFault(EDGE_KILLS, resent_later=True),
    "uploads-invalid-5": PathFault(EDGE_KILLS, packs_per_second=0, invalid=0.05),
    "uploads-invalid-50": PathFault(EDGE_KILLS, packs_per_second=0, invalid=0.5),
    "uploads-invalid-100": PathFault(EDGE_KILLS, packs_per_second=0, invalid=1.0),
    "bodies": PathFault(EDGE_KILLS, rude=12),
    "uploads-broker-away": PathFault(away(OUTAGE_SECONDS), close_seconds=30, is_away=True, seconds=50.0),
    "uploads-broker-away-5-min": PathFault(
        away(LONG_OUTAGE_SECONDS),
        close_seconds=320,
        packs_per_second=50,
        is_away=True,
        seconds=360.0,
        seeds=1,
    ),
    "path-mixed": PathFault(mixed, invalid=0.1, rude=4, resent_later=True, may_be_late=True, seconds=15.0),
}
