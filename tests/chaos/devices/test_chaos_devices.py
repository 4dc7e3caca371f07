"""A short version of the runs on the path of devices, and tests of the suite itself.

Two relays without a foundation of exact counts: the suite must find each.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.devices import turns
from tests.chaos.devices.faults import PathFault, repeated
from tests.chaos.devices.run import run_path
from tests.chaos.devices.stage import PathStage
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.run import Order

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.usefixtures("kafka_jars")]

SHORT_SECONDS = 12.0
DEFECT_SECONDS = 15.0
UPLOADS_PER_SECOND = 150


@pytest.fixture(scope="module")
def chaos_broker(kafka_jars: None) -> Iterator[ChaosBroker]:
    """A broker that tests kill."""
    with ChaosBroker() as broker:
        yield broker


def test_what_clients_were_told_is_counted_once(chaos_broker: ChaosBroker, tmp_path: Path) -> None:
    """Edges, relays and workers are killed, amid invalid, resent, slow, cut and enormous requests."""
    order = Order("path-mixed", 1, SHORT_SECONDS, UPLOADS_PER_SECOND)
    verdict, story = run_path(order, chaos_broker, tmp_path)
    assert verdict.exact, f"{verdict.describe()}\n{story}"
    assert verdict.told > 500
    assert verdict.counted > 0.5 * verdict.told


def resend_all(stage: PathStage) -> None:
    """Do nothing: a fifth of the uploads is sent twice anyway."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("defect", "act"),
    [
        ("no upload ids", resend_all),
        ("fresh pack ids", repeated(turns.kill_relay_after_sending, least=0.5, most=1.0)),
    ],
)
def test_relay_with_a_defect_is_found_out(
    chaos_broker: ChaosBroker, tmp_path: Path, defect: str, act: PathFault
) -> None:
    """Resent uploads need ids; batches that are sent again need the same pack ids."""
    order = Order("path-mixed", 1, DEFECT_SECONDS, UPLOADS_PER_SECOND, replay=False)
    verdict, _ = run_path(order, chaos_broker, tmp_path, PathFault(act, order={"defect": defect}))
    assert verdict.twice > 0, verdict.describe()
    assert not verdict.exact
