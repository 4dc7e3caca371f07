"""Three brokers, replication 3: final estimates never change, though a broker believes an old end of the log.

Times are those of the cluster's settings: on a slow machine a case takes longer, and asserts the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.faults import cluster_turns
from tests.chaos.faults.catalog import FAULTS, once
from tests.chaos.faults.turns import Turn
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.run import run
from tests.chaos.scenes.order import Order

pytestmark = [
    pytest.mark.broker,
    pytest.mark.all,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("kafka_jars"),
]

LOAD_SECONDS = 20.0  # at least: a fault is always run to its end
CLOSES_SECONDS = 18.0  # in which windows of 2 s, with a grace of 1 s, close and have a final estimate


@pytest.fixture(scope="module")
def cluster(kafka_jars: None) -> Iterator[ChaosCluster]:
    """Three brokers that tests cut off, pause and kill."""
    with ChaosCluster() as running:
        yield running


def judge(cluster: ChaosCluster, folder: Path, order: Order, act: Turn | None = None) -> None:
    """Run a fault, perhaps by another act, and compare all with a recount."""
    fault = FAULTS[order.fault]
    verdict, story = run(order, cluster, folder, replace(fault, act=act or fault.act))
    assert verdict.exact, f"{verdict.describe()}\n{story}"
    assert verdict.finals > 0


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        ("partial-partition", cluster_turns.isolate_leader(CLOSES_SECONDS)),
        ("slow-replica", cluster_turns.slow_replica(CLOSES_SECONDS)),
        ("leader-paused", cluster_turns.pause_leader(3.0)),
    ],
)
def test_final_estimates_never_change(cluster: ChaosCluster, tmp_path: Path, name: str, turn: Turn) -> None:
    """A replaced leader that clients reach, a follower that stops fetching, a leader that is paused."""
    judge(cluster, tmp_path, Order(name, 1, LOAD_SECONDS, FAULTS[name].rate), once(turn, 1, 2))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "partial-partition-of-results",
        "coordinator-killed",
        "controller-killed",
        "two-of-three-away",
        "leaders-moved",
        "brokers-rolled",
        "disk-full",
    ],
)
def test_counts_and_finals_survive_faults_of_a_cluster(
    cluster: ChaosCluster, tmp_path: Path, name: str
) -> None:
    """Leaders of all but `reports` replaced, nodes killed or away, leaders moved, a roll, a full disk."""
    judge(cluster, tmp_path, Order(name, 1, FAULTS[name].seconds, FAULTS[name].rate))
