"""A process under test: a command of `deniable` with fault points, a defect, a wrong clock or newer rows.

python -m tests.chaos.processes.child [OPTION ...] FOLDER COMMAND [ARGUMENT ...]

Orders for its fault points are in FOLDER. Relays with `--assigned` take that many partitions without a group
protocol, so nothing fences them.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.processes import FaultPoints

MERGED_ROWS = 4  # so rows of ids are merged several times within a window
REWRITTEN_IDS = 16
BATCH_LINES = 500  # so an input is many transactions


def aggregate(given: argparse.Namespace) -> None:
    from aiokafka.errors import KafkaError

    from deniable.aggregator.ledger import pack_ids
    from tests.chaos.processes import worker_points
    from tests.chaos.processes.defects import DEFECTS
    from tests.chaos.processes.row_versions import ROW_VERSIONS

    pack_ids.MERGED_ROWS, pack_ids.REWRITTEN_IDS = MERGED_ROWS, REWRITTEN_IDS
    worker_points.install(FaultPoints(given.folder, KafkaError))
    if given.late:
        deliver_late(given.late)
    if given.defect:
        DEFECTS[given.defect]()
    if given.rows:
        ROW_VERSIONS[given.rows]()


def relay(given: argparse.Namespace) -> None:
    from tests.support.relay.relay_process import DEFECTS, armed, unfenced

    armed(FaultPoints(given.folder).at)
    if given.defect:
        DEFECTS[given.defect]()
    if given.assigned:
        unfenced(given.assigned)


def edge(given: argparse.Namespace) -> None:
    from tests.support.edge.edge_process import before_answers

    before_answers(FaultPoints(given.folder).at)


def produce(given: argparse.Namespace) -> None:
    from deniable.deploy.produce import command
    from tests.support.producers.fault_points import install

    command.BATCH_LINES = BATCH_LINES
    install(FaultPoints(given.folder))


def export(given: argparse.Namespace) -> None:
    from tests.analysis.export_points import install

    install(FaultPoints(given.folder))


INSTALL = {each.__name__: each for each in (aggregate, relay, edge, produce, export)}


def shift_clock(seconds: float) -> None:
    """Set this process's wall clock ahead or back; the monotonic clock is unchanged."""

    def shifted(real: Callable[[], float], by: float) -> Callable[[], float]:
        return lambda: real() + by

    time.time = shifted(time.time, seconds)
    time.time_ns = shifted(time.time_ns, int(seconds * 1_000_000_000))


def deliver_late(seconds: float) -> None:
    """Delay every record between Faust and the gate, as in a worker that is behind."""
    from deniable.aggregator.partition.assignment import Assignment

    offer = Assignment.offer

    def offer_later(self: Assignment, *record: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, offer, self, *record)

    Assignment.offer = offer_later


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--defect")
    parser.add_argument("--rows")
    parser.add_argument("--clock", type=float, default=0.0)
    parser.add_argument("--late", type=float, default=0.0)
    parser.add_argument("--assigned", type=int, default=0)
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.clock:
        shift_clock(given.clock)
    INSTALL[given.command[0]](given)
    sys.argv = ["deniable", *given.command]
    from deniable.deploy.cli.main import main as deniable

    deniable()


if __name__ == "__main__":
    main()
