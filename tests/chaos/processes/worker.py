"""A worker under test: `deniable aggregate` with fault points, and perhaps a defect or a wrong clock.

python -m tests.chaos.processes.worker [--defect NAME] [--clock SECONDS] [--late SECONDS] FOLDER
    aggregate [OPTION ...]
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.processes.defects import DEFECTS

MERGED_ROWS = 4  # so rows of ids are merged several times within a window


def shift_clock(seconds: float) -> None:
    """Set this process's wall clock ahead or back; the monotonic clock is unchanged."""

    def shifted(real: Callable[[], float], by: float) -> Callable[[], float]:
        return lambda: real() + by

    time.time = shifted(time.time, seconds)
    time.time_ns = shifted(time.time_ns, int(seconds * 1_000_000_000))


def deliver_late(seconds: float) -> None:
    """Delay every record between Faust and the gate, as in a worker that is behind."""
    from aggregator.partition.assignment import Assignment

    offer = Assignment.offer

    def offer_later(self: Assignment, *record: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, offer, self, *record)

    Assignment.offer = offer_later


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--defect", choices=sorted(DEFECTS))
    parser.add_argument("--clock", type=float, default=0.0)
    parser.add_argument("--late", type=float, default=0.0)
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.clock:
        shift_clock(given.clock)
    from aggregator.ledger import pack_ids
    from tests.chaos.processes import fault_points

    pack_ids.MERGED_ROWS = MERGED_ROWS

    fault_points.install(fault_points.Orders(given.folder))
    if given.late:
        deliver_late(given.late)
    if given.defect:
        DEFECTS[given.defect]()
    sys.argv = ["deniable", *given.command]
    from deploy.cli.main import main as deniable

    deniable()


if __name__ == "__main__":
    main()
