"""The processes that a fault on the path of devices may touch during a run."""

import time
from dataclasses import dataclass

from tests.chaos.devices.processes import Edges, Relays, Seat
from tests.chaos.faults.stage import Stage


@dataclass
class PathStage(Stage):
    """A run of the whole path under load.

    Parameters
    ----------
    edges, relays : of the run.
    close_seconds : time from a window's end until relays take no more uploads for it.
    window_seconds : length of all windows.
    """

    edges: Edges
    relays: Relays
    close_seconds: int
    window_seconds: int

    def edge(self) -> Seat:
        return self.chance.choice(self.edges.seats)

    def relay(self) -> Seat:
        return self.chance.choice(self.relays.seats)

    def sleep_until_before_close(self, seconds: float) -> None:
        """Sleep until so long before relays close a window."""
        past = (time.time() + seconds - self.close_seconds) % self.window_seconds
        time.sleep(self.window_seconds - past)
