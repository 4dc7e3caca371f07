"""`changes` on a real broker, and the alert of a worker: a change gives both, and no change neither."""

import json
import time
from contextlib import closing
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import numpy as np
import pytest
from kafka import KafkaProducer

import deniable
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.config.file import load
from deniable.estimators.collection import Collection
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

WINDOWS, CHANGE, SECONDS = 120, 90, 2
REPORTS = 20_000
NUMBER = """\
  - {name: minutes, mechanism: number, minimum: 0, maximum: 600, steps: 60, epsilon: 3.0, window_seconds: 2,
     grace_seconds: 1, minimum_reports: 1, change_alarms_a_year: 5, budget: none}
"""
#: Shares before and after the change. Of minutes they are those of steps: numbers from 0 to 300, then from 30
#: to 330.
SHARES = {
    "carrier": (np.array([0.5, 0.3, 0.2]), np.array([0.42, 0.38, 0.2])),
    "minutes": tuple(np.eye(60)[list(steps)].mean(axis=0) for steps in (range(30), range(3, 33))),
}


def counts_of_window(rng: np.random.Generator, collection: Collection, shares: np.ndarray) -> WindowCounts:
    """Reports of clients drawn from a population."""
    mechanism: Any = collection.mechanism
    if collection.name == "minutes":
        rates = mechanism.channel @ shares
        rates /= rates.sum()
    else:
        rates = mechanism.q + mechanism.contrast * shares
    return WindowCounts(rng.multinomial(REPORTS, rates)[None].astype(np.int64), np.array([REPORTS]), 1, 0)


@pytest.fixture(scope="module")
def last_window() -> int:
    """Start of the last window: some seconds ago."""
    return (int(time.time()) - 60) // SECONDS * SECONDS


@pytest.fixture(scope="module", params=["changed", pytest.param("constant", marks=pytest.mark.nightly)])
def deployment(
    request: pytest.FixtureRequest,
    broker: str,
    tmp_path_factory: pytest.TempPathFactory,
    last_window: int,
) -> Deployment:
    """120 final windows of carrier and minutes, whose shares change after 90 of them, or do not."""
    made = Deployment(tmp_path_factory.mktemp("changes"), broker, f"test-{uuid4().hex[:12]}-")
    file = made.folder / "deniable.yaml"
    file.write_text(file.read_text() + NUMBER)
    made.create_topics()
    loaded = load(file, environment={})
    rng = np.random.default_rng(1)
    with closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for name, shares in SHARES.items():
            collection = loaded.collection(name)
            for number in range(WINDOWS):
                is_later = number >= CHANGE and request.param == "changed"
                window = counts_of_window(rng, collection, shares[is_later])
                start = last_window - (WINDOWS - 1 - number) * SECONDS
                for key, value in encode_pages(FinalWindow.of(collection, start, window)):
                    producer.send(made.prefix + "windows", value, key=key, partition=0)
        producer.flush()
    return made


def run(deployment: Deployment, *arguments: str) -> str:
    ended = deployment.run(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def gauges(address: str) -> dict[str, float]:
    """Return metrics by name and labels."""
    with urlopen(f"{address}metrics", timeout=60) as answered:  # noqa: S310 - on loopback
        lines = answered.read().decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


@pytest.mark.all
def test_commands_and_worker_find_the_same(
    request: pytest.FixtureRequest, deployment: Deployment, last_window: int
) -> None:
    """The rates are 0.1 and 5 a year of windows of 2 s: chance gives none in 120 of them, but for 1e-6.

    A change of 30 minutes is 25 standard errors of a window, so the first window after it shows it.
    """
    is_changed = "changed" in request.node.name
    start, end = last_window - (WINDOWS - 1) * SECONDS, last_window + SECONDS
    changed_at = last_window - (WINDOWS - 1 - CHANGE) * SECONDS
    period = ("--from", str(start), "--to", str(end))

    answer = json.loads(run(deployment, "changes", "carrier", *period, "--json"))
    found = {each["value"]: each for each in answer["changes"]}
    assert (answer["version"], answer["rate"], answer["coverage"]["windows"]) == (1, 0.1, WINDOWS)
    assert answer["sequence"]["reports"] == WINDOWS * REPORTS
    assert found.keys() == ({"AA", "B6"} if is_changed else set())
    for value, size in (("AA", -0.08), ("B6", 0.08)) if is_changed else ():
        assert found[value]["low"] < size < found[value]["high"]
        assert abs(found[value]["since"] - changed_at) <= 2 * SECONDS
    text = run(deployment, "changes", "carrier", *period)
    said = "2 changes (at most 0.1 false alarms a year):" if is_changed else "no share changed"
    assert text.startswith(said)
    assert "95 % intervals at every look" in text

    of_minutes = json.loads(run(deployment, "changes", "minutes", *period, "--json"))
    sequence = of_minutes["sequence"]
    assert (of_minutes["rate"], len(of_minutes["changes"])) == (5, int(is_changed))
    assert (sequence["values"], sequence["windows"], sequence["repeated_noise"]) == (["mean"], WINDOWS, False)
    text = run(deployment, "changes", "minutes", *period)
    [low, high] = (f"{sequence[end][0]:.6g}" for end in ("low", "high"))
    assert text.splitlines()[-1].endswith(f", from {low} to {high}")
    if is_changed:
        [mean] = of_minutes["changes"]
        assert (mean["value"], mean["since"]) == ("mean", changed_at)
        assert mean["low"] < 30 < mean["high"]
        assert mean["before"] == pytest.approx(150, abs=2)
        assert 150 < sequence["low"][0] < 157.5 < sequence["high"][0] < 165  # of a mean of 157.5
        assert text.startswith("1 change (at most 5 false alarms a year):\n  mean: 1")

    share = 'deniable_share_change_ratio{collection="carrier",value="B6"}'
    of_mean = 'deniable_mean_change{collection="minutes"}'
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        address = deployment.address("worker.log")
        if is_changed:
            expected = {share: found["B6"]["change"], of_mean: mean["change"]}
            assert wait_until(lambda: expected.items() <= gauges(address).items()), deployment.output(
                "worker.log"
            )
        else:
            time.sleep(5)
            assert {share, of_mean}.isdisjoint(gauges(address))


def test_sequences_of_tables_are_those_of_the_command(deployment: Deployment, last_window: int) -> None:
    """Figure by figure, and as doubles."""
    start, end = last_window - (WINDOWS - 1) * SECONDS, last_window + SECONDS
    file = deployment.folder / "deniable.yaml"
    period = ("--from", str(start), "--to", str(end), "--json")
    record = json.loads(run(deployment, "rollup", "carrier", *period))
    table = deniable.rollup(file, collection="carrier", start=start, end=end)
    assert table["value"].to_pylist() == record["sequence"]["values"]
    for name in ("low", "high", "low_all", "high_all"):
        column = table[f"sequence_{name}"]
        assert (str(column.type), column.to_pylist()) == ("double", record["sequence"][name])
    for name in ("low_all", "high_all"):
        assert table[name].to_pylist() == record["independent"][name]
        assert table[f"shared_{name}"].to_pylist() == record["shared"][name]
    sequence = json.loads(run(deployment, "rollup", "minutes", *period))["sequence"]
    table = deniable.rollup(file, collection="minutes", start=start, end=end)
    assert table.about["sequence"] == sequence
    changes = json.loads(run(deployment, "changes", "minutes", *period))
    assert sequence["low"] == pytest.approx(changes["sequence"]["low"])


def test_wrong_use_is_reported(deployment: Deployment) -> None:
    ended = deployment.run("changes", "carrier", "--rate", "0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "'--rate'" in ended.stderr
