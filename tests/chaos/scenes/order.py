"""The parameters of a run, and why it could not be judged."""

from collections.abc import Sequence
from dataclasses import dataclass


class RunError(RuntimeError):
    """A run failed or could not be judged; the message has the last lines of its processes."""


@dataclass(frozen=True)
class Order:
    """The parameters of a run; fault and seed determine everything except the machine's speed.

    Parameters
    ----------
    fault : a name of FAULTS.
    seed : of order, times, victims and the load.
    seconds : duration of the load.
    rate : packs or uploads a second.
    options : of each worker, such as a defect; see `tests.chaos.processes.child`.
    replay : whether `deniable replay` is run, too.
    """

    fault: str
    seed: int
    seconds: float = 60.0
    rate: int = 2000
    options: Sequence[str] = ()
    replay: bool = True

    @property
    def again(self) -> str:
        """Return the command that repeats it."""
        arguments = f"--fault {self.fault} --seed {self.seed} --seconds {self.seconds:g}"
        return f'make chaos ARGS="{arguments} --rate {self.rate} --again"'
