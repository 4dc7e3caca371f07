"""A worker under test: `deniable aggregate` with fault points, and perhaps a defect or a wrong clock.

python -m tests.chaos.worker [--defect NAME] [--clock SECONDS] FOLDER aggregate [OPTION ...]
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.defects import DEFECTS


def shift_clock(seconds: float) -> None:
    """Set this process's wall clock ahead, or back; the monotonic one stays."""

    def shifted(real: Callable[[], float], by: float) -> Callable[[], float]:
        return lambda: real() + by

    time.time = shifted(time.time, seconds)
    time.time_ns = shifted(time.time_ns, int(seconds * 1_000_000_000))  # type: ignore[assignment]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--defect", choices=sorted(DEFECTS))
    parser.add_argument("--clock", type=float, default=0.0)
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.clock:
        shift_clock(given.clock)
    from tests.chaos import fault_points

    fault_points.install(fault_points.Orders(given.folder))
    if given.defect:
        DEFECTS[given.defect]()
    sys.argv = ["deniable", *given.command]
    from deploy.cli import main as deniable

    deniable()


if __name__ == "__main__":
    main()
