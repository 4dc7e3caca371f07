"""`changes` on a real broker, and the alert of a worker: a change gives both, and no change neither."""

import json
import time
from contextlib import closing
from dataclasses import replace
from urllib.request import urlopen
from uuid import uuid4

import numpy as np
import pytest
from click.testing import CliRunner, Result
from kafka import KafkaProducer

import deniable
from aggregator.records.final_window import FinalWindow, encode_pages
from aggregator.records.window_counts import WindowCounts
from deploy.config.file import load
from deploy.query.detectors.changes import changes
from estimators.collection import Collection
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

WINDOWS, CHANGE, SECONDS = 120, 90, 2
REPORTS = 20_000
SHARES, LATER = np.array([0.5, 0.3, 0.2]), np.array([0.42, 0.38, 0.2])


def counts_of_window(
    rng: np.random.Generator, collection: Collection, shares: np.ndarray, reports: int
) -> WindowCounts:
    """Reports of clients drawn from a population."""
    mechanism = collection.mechanism
    counts = rng.multinomial(reports, mechanism.q + mechanism.contrast * shares)  # type: ignore[union-attr]
    return WindowCounts(counts[None].astype(np.int64), np.array([reports]), 1, 0)


@pytest.fixture(scope="module")
def last_window() -> int:
    """Start of the last window: some seconds ago."""
    return (int(time.time()) - 60) // SECONDS * SECONDS


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(LATER, id="changed"),
        pytest.param(SHARES, id="constant", marks=pytest.mark.nightly),
    ],
)
def deployment(
    request: pytest.FixtureRequest,
    broker: str,
    tmp_path_factory: pytest.TempPathFactory,
    last_window: int,
) -> Deployment:
    """120 final windows of carrier, whose shares change after 90 of them, or do not."""
    made = Deployment(tmp_path_factory.mktemp("changes"), broker, f"test-{uuid4().hex[:12]}-")
    made.create_topics()
    carrier = load(made.folder / "deniable.yaml", environment={}).collections[0]
    rng = np.random.default_rng(1)
    with closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for number in range(WINDOWS):
            shares = request.param if number >= CHANGE else SHARES
            start = last_window - (WINDOWS - 1 - number) * SECONDS
            window = counts_of_window(rng, carrier, shares, REPORTS)
            for key, value in encode_pages(FinalWindow.of(carrier, start, window)):
                producer.send(made.prefix + "windows", value, key=key, partition=0)
        producer.flush()
    return replace(made)


def run(deployment: Deployment, *arguments: str) -> Result:
    options = [*arguments, "--config", str(deployment.folder / "deniable.yaml")]
    return CliRunner().invoke(changes, options, standalone_mode=False)


def test_command_and_worker_find_the_same(
    request: pytest.FixtureRequest, deployment: Deployment, last_window: int
) -> None:
    """The rate is 0.1 a year of windows of 2 s: chance gives none in 120 of them, but for 1e-6."""
    is_changed = "changed" in request.node.name
    period = ("--from", str(last_window - (WINDOWS - 1) * SECONDS), "--to", str(last_window + SECONDS))
    answer = json.loads(run(deployment, "carrier", *period, "--json").stdout)
    found = {each["value"]: each for each in answer["changes"]}
    assert (answer["version"], answer["rate"], answer["coverage"]["windows"]) == (1, 0.1, WINDOWS)
    assert answer["sequence"]["reports"] == WINDOWS * REPORTS
    assert found.keys() == ({"AA", "B6"} if is_changed else set())
    for value, size in (("AA", -0.08), ("B6", 0.08)) if is_changed else ():
        assert found[value]["low"] < size < found[value]["high"]
        assert abs(found[value]["since"] - (last_window - (WINDOWS - 1 - CHANGE) * SECONDS)) <= 2 * SECONDS
    text = run(deployment, "carrier", *period).stdout
    assert text.startswith(
        "2 changes (at most 0.1 false alarms a year):" if is_changed else "no share changed"
    )
    assert "95 % intervals at every look" in text
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        address = deployment.address("worker.log")

        def metrics() -> str:
            with urlopen(f"{address}metrics", timeout=60) as answered:  # noqa: S310 - on loopback
                return str(answered.read().decode())

        shown = 'deniable_share_change_ratio{collection="carrier",value="B6"}'
        if is_changed:
            assert wait_until(lambda: shown in metrics(), 60), deployment.output("worker.log")
            line = next(line for line in metrics().splitlines() if line.startswith(shown))
            assert float(line.split()[-1]) == found["B6"]["change"]
        else:
            time.sleep(5)
            assert "deniable_share_change_ratio{" not in metrics()


def test_sequence_of_the_table_is_that_of_the_command(deployment: Deployment, last_window: int) -> None:
    """Figure by figure, and as doubles."""
    start, end = last_window - (WINDOWS - 1) * SECONDS, last_window + SECONDS
    ended = deployment.run("rollup", "carrier", "--from", str(start), "--to", str(end), "--json")
    record = json.loads(ended.stdout)
    file = deployment.folder / "deniable.yaml"
    table = deniable.rollup(file, collection="carrier", start=start, end=end)
    assert table["value"].to_pylist() == record["sequence"]["values"]
    for name in ("low", "high", "low_all", "high_all"):
        column = table[f"sequence_{name}"]
        assert (str(column.type), column.to_pylist()) == ("double", record["sequence"][name])
    for name in ("low_all", "high_all"):
        assert table[name].to_pylist() == record["independent"][name]
        assert table[f"shared_{name}"].to_pylist() == record["shared"][name]


def test_wrong_use_is_reported(deployment: Deployment) -> None:
    file = str(deployment.folder / "deniable.yaml")
    ended = CliRunner().invoke(changes, ["carrier", "--rate", "0", "--config", file])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "'--rate'" in ended.stderr
