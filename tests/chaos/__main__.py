"""`make chaos`: every fault in several seeded runs; resumes where the last call ended.

make chaos ARGS="--fault zombie --seed 3"     one run, unless it is in the results
make chaos ARGS="--rate 800 --seeds 1"        on a busy machine
"""

import argparse
import logging
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from kafka.errors import KafkaError

from deniable.deploy.cli.signals import end_in_good_order
from tests.chaos.faults.catalog import FAULTS
from tests.chaos.faults.fault import ClusterFault
from tests.chaos.processes import network
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.report import Report, table
from tests.chaos.run import run
from tests.chaos.scenes.order import Order, RunError
from tests.support.paths import REPOSITORY

#: Combinations for the tests, which run if they are named.
SHORT = {"mixed", "path-mixed"}
RESULTS = REPOSITORY / "bench" / "results" / "chaos.json"


def main() -> int:
    """Run the given faults and seeds; exit status 1 unless every run was exact."""
    parser = argparse.ArgumentParser(
        prog="make chaos", description="Workers and devices under faults on a real Kafka."
    )
    parser.add_argument(
        "--fault", action="append", choices=sorted(FAULTS), help="only this fault; repeatable"
    )
    parser.add_argument(
        "--seed", action="append", type=int, help="this seed, whatever its number; repeatable"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to this one, up to those of each fault")
    parser.add_argument("--seconds", type=float, help="duration of the load; default by fault")
    parser.add_argument("--rate", type=int, help="packs or uploads a second; default by fault")
    parser.add_argument("--again", action="store_true", help="also runs that are in the results already")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file of the results")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, end_in_good_order)
    logging.disable()  # clients say at length that a broker is away
    report = Report(given.results)
    orders = [
        Order(name, seed, given.seconds or fault.seconds, fault.rate if given.rate is None else given.rate)
        for seed in given.seed or range(1, given.seeds + 1)
        for name, fault in FAULTS.items()
        if (name in given.fault if given.fault else name not in SHORT) and (given.seed or seed <= fault.seeds)
    ]
    wanted = [order for order in orders if given.again or not report.has(order)]
    failed = sum(not _run(order, report, f"{n}/{len(wanted)}") for n, order in enumerate(wanted, 1))
    say(table(report.rows))
    return 1 if failed else 0


def _run(order: Order, report: Report, number: str) -> bool:
    """Run one order on a separate broker, or cluster; return whether counts were exact."""
    fault = FAULTS[order.fault]
    try:
        with (
            network.own() if fault.own_network else nullcontext(),
            tempfile.TemporaryDirectory(prefix="chaos-") as folder,
            ChaosCluster() if isinstance(fault, ClusterFault) else ChaosBroker() as broker,
        ):
            verdict, story = run(order, broker, Path(folder))
    except (RunError, KafkaError, OSError) as error:
        report.add(order, None, (str(error) or repr(error)).splitlines()[0])
        say(f"{number} {order.fault} seed {order.seed}: NOT JUDGED\n{error}")
        return False
    report.add(order, verdict)
    says = "exact" if verdict.exact else "NOT EXACT"
    say(f"{number} {order.fault} seed {order.seed}: {says}: {verdict.describe()}")
    if story:
        say(story)
    return verdict.exact


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
