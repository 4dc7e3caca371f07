"""A fault and the parameters of its runs: of workers, of the path of devices, of a cluster of brokers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.config.sections import RelaySection
from tests.chaos.faults.turns import Turn
from tests.chaos.processes.cluster.cluster import REPLICATION
from tests.chaos.processes.collection_setup import FLASH_GRACE_SECONDS, FLASH_WINDOW_SECONDS


@dataclass(frozen=True)
class Fault:
    """A fault of workers, and its runs.

    Parameters
    ----------
    act : injects the fault until the load ends.
    workers : their number at the start.
    malformed : share of malformed packs or uploads in the load, in [0, 1].
    stranger : whether a foreign producer writes transactions, too.
    seconds : duration of the load.
    rate : packs or uploads a second; 0, of uploads: as fast as they are answered.
    seeds : number of runs.
    own_network : whether it needs a separate network.
    window_seconds, grace_seconds : of `flash`, the collection whose windows end before the run does.
    overdue_seconds : limit for each window's final estimate, after the end of its grace; inf for no limit;
        None if not checked.
    replication : of all topics.
    """

    act: Turn
    workers: int = 2
    malformed: float = 0.0
    stranger: bool = False
    seconds: float = 60.0
    rate: int = 2000
    seeds: int = 5
    own_network: bool = False
    window_seconds: int = FLASH_WINDOW_SECONDS
    grace_seconds: int = FLASH_GRACE_SECONDS
    overdue_seconds: float | None = None
    replication: int = 1


@dataclass(frozen=True)
class PathFault(Fault):
    """A fault on the path of devices, with two edges, two relays and two workers.

    Parameters
    ----------
    rude : number of clients that send slow, cut and enormous requests.
    resent_later : whether resent uploads come up to three windows later, beyond the close of theirs.
    close_seconds : time after a window's end in which relays take its uploads.
    delivery_seconds : of the collection file: workers' grace is longer than relays' by it.
    is_away : whether the broker is away for so long that edges must answer 503.
    relay_options : of each relay; see `tests.chaos.processes.child`.
    """

    seconds: float = 30.0
    rate: int = 200
    seeds: int = 3
    rude: int = 0
    resent_later: bool = False
    close_seconds: int = 4
    delivery_seconds: int = RelaySection().delivery_seconds
    is_away: bool = False
    relay_options: Sequence[str] = ()


@dataclass(frozen=True)
class ClusterFault(Fault):
    """A fault of three brokers, with replication 3; one of them leads half of `reports`, another all else."""

    rate: int = 200
    overdue_seconds: float | None = math.inf
    window_seconds: int = 2
    grace_seconds: int = 1
    replication: int = REPLICATION
