"""A short version of `make chaos`: one run with the most informative faults, and tests of the suite itself.

Three defects that lose or double reports are injected into workers; the suite must find each.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.chaos.faults import turns
from tests.chaos.faults.faults import ROLLS, Fault, repeated
from tests.chaos.faults.stage import Stage
from tests.chaos.judging import stored
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.workers import ROOT
from tests.chaos.report import Report
from tests.chaos.run import Order, RunError, run
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.usefixtures("kafka_jars")]

DEFECT_SECONDS = 15.0
BEHIND_SECONDS = 10.0
CUT_SECONDS = 400.0
ROLL_SECONDS = 25.0
ROLL_GRACE_SECONDS = 15
ROLL_OVERDUE_SECONDS = 30  # `make chaos` allows 10, on a machine that does nothing else
RETIRE_SECONDS = 20.0


@pytest.fixture(scope="module")
def chaos_broker(kafka_jars: None) -> Iterator[ChaosBroker]:
    """A broker that tests kill."""
    with ChaosBroker() as broker:
        yield broker


def test_counts_are_exact_under_mixed_faults(tmp_path: Path) -> None:
    """Faults: kill -9, a zombie, SIGTERM, a killed broker, faults in a checkpoint, a refused checkpoint.

    The load has duplicates, malformed packs and foreign transactions. Runs in a separate process, like `make
    chaos`, because kafka-python leaks sockets while a broker is away.
    """
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "tests.chaos", "--fault", "mixed", "--seed", "1", "--rate", "1000"]
    ended = subprocess.run(
        [*command, "--results", str(results)], cwd=ROOT, capture_output=True, text=True, timeout=CUT_SECONDS
    )
    assert ended.returncode == 0, ended.stdout
    (row,) = Report(results).rows
    assert row["packs"] > 20_000
    assert row["rejected"] > 1000
    assert row["compacted"] > 0.2


def zombie(stage: Stage) -> None:
    """Pause a worker during a checkpoint: others take over, then it wakes up and stores its counts."""
    stage.rest(4, 6)
    worker = stage.strike("before-sends", "pause")
    assert worker is not None
    successor = next(other for other in stage.workers.alive if other is not worker)
    opened = successor.says("ledger open")
    partitions = stage.workers.configuration.kafka.partitions
    assert wait_until(lambda: successor.says("ledger open") >= opened + partitions, 120)
    time.sleep(4)  # in which it stores some checkpoints
    worker.signal(signal.SIGCONT)


failures = repeated(turns.fail_checkpoint, 0.3, 1.0, enough=2.0)
#: Records of half a second are underway whenever a ledger is opened: without a gate, they count there.
BEHIND = ("--late", "0.5")


@pytest.mark.parametrize(
    ("defect", "act", "options"),
    [
        ("no-fencing", zombie, ()),
        pytest.param("no-gate", failures, BEHIND, marks=pytest.mark.nightly),
        pytest.param("no-rewind", failures, (), marks=pytest.mark.nightly),
    ],
)
def test_worker_without_one_foundation_is_detected(
    chaos_broker: ChaosBroker,
    tmp_path: Path,
    defect: str,
    act: Callable[[Stage], None],
    options: Sequence[str],
) -> None:
    """Fencing, the gate or the rewind is switched off, under the fault that needs it.

    A zombie's late checkpoint always sets the position back; whether counts differ depends on what it held.
    Whoever opens that ledger next refuses it.
    """
    order = Order("mixed", 1, DEFECT_SECONDS, options=("--defect", defect, *options), replay=False)
    try:
        verdict, _ = run(order, chaos_broker, tmp_path, Fault(act))
    except RunError as error:
        assert "replay --rebuild" in str(error)  # noqa: PT017 - one of two outcomes
        return
    assert verdict.difference > 0 or verdict.steps_back > 0, verdict.describe()


@pytest.mark.nightly
def test_late_worker_counts_exactly_with_the_gate(chaos_broker: ChaosBroker, tmp_path: Path) -> None:
    """The run without a gate fails because of the gate, not because of the delay."""
    order = Order("mixed", 1, BEHIND_SECONDS, options=BEHIND, replay=False)
    verdict, story = run(order, chaos_broker, tmp_path, Fault(failures))
    assert verdict.exact, f"{verdict.describe()}\n{story}"


def roll_until_estimated(stage: Stage) -> None:
    """Replace all workers, under load until a window has its final estimate, which `late` judges."""
    ROLLS(stage)
    kafka, topics = stage.workers.configuration.kafka, stage.workers.configuration.topics
    wait_until(lambda: bool(stored.finals(kafka.bootstrap_servers, topics)), 2 * ROLL_OVERDUE_SECONDS)


def test_rolling_restart_is_exact_and_estimates_come_in_time(
    chaos_broker: ChaosBroker, tmp_path: Path
) -> None:
    """Three workers are replaced one by one, each once the previous replacement is ready."""
    order = Order("rolling-restart", 1, ROLL_SECONDS, 1000, replay=False)
    act = Fault(
        roll_until_estimated,
        workers=3,
        grace_seconds=ROLL_GRACE_SECONDS,
        overdue_seconds=ROLL_OVERDUE_SECONDS,
    )
    verdict, story = run(order, chaos_broker, tmp_path, act)
    assert verdict.exact, f"{verdict.describe()}\n{story}"
    assert verdict.finals >= 1
    assert verdict.latest_final > 0


@pytest.mark.nightly
def test_other_collections_continue_when_one_is_added_and_retired(
    chaos_broker: ChaosBroker, tmp_path: Path
) -> None:
    """Two workers are replaced one by one for the new file, and again for the file without the collection."""
    order = Order("collection-retired", 1, RETIRE_SECONDS, 1000)
    verdict, story = run(order, chaos_broker, tmp_path)
    assert verdict.exact, f"{verdict.describe()}\n{story}"
    assert verdict.finals >= 2
