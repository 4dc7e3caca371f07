"""`changes` of a number on a real broker, and the alert of a worker, at the rate of the collection file."""

import json
import time
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import numpy as np
import pytest
from kafka import KafkaProducer

import deniable
from aggregator.records.final_window import FinalWindow, encode_pages
from aggregator.records.window_counts import WindowCounts
from deploy.config.file import load
from estimators.mechanisms.square_wave import SquareWave
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

WINDOWS, CHANGE, SECONDS = 120, 90, 2
REPORTS = 20_000
NUMBER = """\
collections:
  - {name: minutes, mechanism: number, minimum: 0, maximum: 600, steps: 60, epsilon: 3.0, window_seconds: 2,
     grace_seconds: 1, minimum_reports: 1, change_alarms_a_year: 5, budget: none}
"""
#: Shares of steps: numbers from 0 to 300, then from 30 to 330.
SHARES, LATER = (np.eye(60)[list(places)].mean(axis=0) for places in (range(30), range(3, 33)))


@pytest.fixture(scope="module")
def last_window() -> int:
    """Start of the last window: some seconds ago."""
    return (int(time.time()) - 60) // SECONDS * SECONDS


@pytest.fixture(scope="module")
def deployment(broker: str, tmp_path_factory: pytest.TempPathFactory, last_window: int) -> Deployment:
    """120 final windows of minutes, whose mean changes from 150 to 180 after 90 of them."""
    made = Deployment(tmp_path_factory.mktemp("means"), broker, f"test-{uuid4().hex[:12]}-")
    _ask_for_a_number(made.folder / "deniable.yaml")
    made.create_topics()
    minutes = load(made.folder / "deniable.yaml", environment={}).collections[0]
    wave = minutes.mechanism
    assert isinstance(wave, SquareWave)
    rng = np.random.default_rng(1)
    with closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for number in range(WINDOWS):
            rates = wave.channel @ (LATER if number >= CHANGE else SHARES)
            counts = rng.multinomial(REPORTS, rates / rates.sum()).astype(np.int64)
            start = last_window - (WINDOWS - 1 - number) * SECONDS
            window = WindowCounts(counts[None], np.array([REPORTS]), 1, 0)
            for key, value in encode_pages(FinalWindow.of(minutes, start, window)):
                producer.send(made.prefix + "windows", value, key=key, partition=0)
        producer.flush()
    return made


def _ask_for_a_number(file: Path) -> None:
    head, _, _ = file.read_text().partition("collections:")
    file.write_text(head + NUMBER)


def test_command_and_worker_find_the_change_of_the_mean(deployment: Deployment, last_window: int) -> None:
    """A change of 30 minutes is 25 standard errors of a window, so the first window after it shows it."""
    period = ("--from", str(last_window - (WINDOWS - 1) * SECONDS), "--to", str(last_window + SECONDS))
    answer = json.loads(deployment.run("changes", "minutes", *period, "--json").stdout)
    [found] = answer["changes"]
    assert (answer["rate"], found["value"]) == (5, "mean")
    assert found["since"] == last_window - (WINDOWS - 1 - CHANGE) * SECONDS
    assert found["low"] < 30 < found["high"]
    assert found["before"] == pytest.approx(150, abs=2)
    sequence = answer["sequence"]  # of a mean of 157.5
    assert (sequence["values"], sequence["windows"], sequence["repeated_noise"]) == (["mean"], WINDOWS, False)
    assert 150 < sequence["low"][0] < 157.5 < sequence["high"][0] < 165
    text = deployment.run("changes", "minutes", *period).stdout
    assert text.startswith("1 change (at most 5 false alarms a year):\n  mean: 1")
    [low, high] = (f"{sequence[end][0]:.6g}" for end in ("low", "high"))
    assert text.splitlines()[-1].endswith(f", from {low} to {high}")
    rolled = json.loads(deployment.run("rollup", "minutes", *period, "--json").stdout)["sequence"]
    assert rolled["low"] == pytest.approx(sequence["low"])
    table = deniable.rollup(
        deployment.folder / "deniable.yaml", collection="minutes", start=int(period[1]), end=int(period[3])
    )
    assert table.about["sequence"] == rolled
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        address = deployment.address("worker.log")

        def metrics() -> list[str]:
            with urlopen(f"{address}metrics", timeout=60) as answered:  # noqa: S310 - on loopback
                return answered.read().decode().splitlines()

        shown = 'deniable_mean_change{collection="minutes"} '
        assert wait_until(lambda: any(line.startswith(shown) for line in metrics()), 60)
        [line] = [line for line in metrics() if line.startswith(shown)]
        assert float(line.split()[-1]) == found["change"]
