"""`detect` on a real broker: alarms of forged windows and packs, and none of honest ones."""

import json
import os
import re
from contextlib import closing
from uuid import uuid4

import numpy as np
import pytest
from kafka import KafkaProducer

from bench.poisoning.forgeries import SeededWords, krr_window, rappor_window
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.config.file import load
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.producers.randomization.randomizers import instantaneous, permanent
from deniable.protocol import wire
from tests.support.deployments import Deployment

pytestmark = pytest.mark.broker

START = 1_700_000_000
WINDOWS = 5
PERIOD = ("--from", str(START), "--to", str(START + 2 * WINDOWS))
REPORTS = 20_000
PLACES = ["JFK", "LAX", "SFO"]


@pytest.fixture(scope="module")
def deployment(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Five windows of each collection, the last one forged in part; 6 packs of place, of which one is."""
    made = Deployment(tmp_path_factory.mktemp("detect"), broker, f"test-{uuid4().hex[:12]}-")
    made.create_topics()
    loaded = load(made.folder / "deniable.yaml", environment={})
    carrier, place = loaded.collections
    rng = np.random.default_rng(1)
    with closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for number in range(WINDOWS):
            forged = REPORTS // 10 if number == WINDOWS - 1 else 0
            truth = np.array([0.6, 0.4, 0]) * (REPORTS - forged)
            counts = krr_window(rng, truth.astype(int), forged, "target", 2, carrier.mechanism)
            bits = rappor_window(rng, PLACES, truth.astype(int), forged, "one-cohort", 2, place.mechanism)
            for collection, window in (
                (carrier, WindowCounts(counts[None], np.array([REPORTS]), 1, 0)),
                (place, WindowCounts(bits.counts, bits.cohort_sizes, 1, 0)),
            ):
                for key, value in encode_pages(FinalWindow.of(collection, START + 2 * number, window)):
                    producer.send(made.prefix + "windows", value, key=key, partition=0)
        cohorts = np.zeros(500, np.int64)
        rows = bloom_rows(["JFK"] * 500, cohorts, place.mechanism)
        words = SeededWords(rng)
        for number in range(6):
            sent = rows
            if number != 4:
                sent = instantaneous(permanent(rows, place.mechanism, words), place.mechanism, words)
            head = (wire.RAPPOR_NUMBER, 0, place.fingerprint, START, 500, place.width)
            record = wire.encode(wire.Pack(*head, os.urandom(16), sent.tobytes()))
            producer.send(made.prefix + "reports", record, partition=1)
        producer.send(made.prefix + "reports", b"no pack", partition=1)
        producer.flush()
    return made


def answer(deployment: Deployment, status: int, *arguments: str) -> dict[str, dict[str, object]]:
    ended = deployment.run("detect", *arguments, "--json")
    assert ended.returncode == status, ended.stderr
    shown = json.loads(ended.stdout)
    assert (shown["version"], shown["rate"]) == (1, 0.001)
    assert shown["coverage"]["windows"] == shown["coverage"]["expected"]
    return {each.pop("detector"): each for each in shown["findings"]}


def test_forged_windows_and_packs_alarm(deployment: Deployment) -> None:
    last = START + 2 * (WINDOWS - 1)
    found = answer(deployment, 1, "place", *PERIOD, "--reports", "100")
    assert [each["judged"] for each in found.values()] == [WINDOWS, WINDOWS, WINDOWS - 1, 6]
    assert [alarm["window_start"] for alarm in found["cohorts"]["alarms"]] == [last]
    assert [alarm["window_start"] for alarm in found["change"]["alarms"]] == [last]
    assert [(alarm["partition"], alarm["offset"]) for alarm in found["popcounts"]["alarms"]] == [(1, 4)]


def test_honest_windows_do_not_alarm(deployment: Deployment) -> None:
    before = ("--from", str(START), "--to", str(START + 2 * (WINDOWS - 1)))
    for collection in ("carrier", "place"):
        found = answer(deployment, 0, collection, *before)
        assert all(not each["alarms"] for each in found.values())


def test_people_get_sentences(deployment: Deployment) -> None:
    ended = deployment.run("detect", "carrier", *PERIOD)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("carrier: 5 of 5 windows of 2 s joined, ")
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("impossible: ")
    assert lines[-2].startswith(
        "change: 1 of 4 windows alarm (the distribution differs from the window before);"
        " honest reports look like this in "
    )
    assert lines[-2].endswith(" runs")
    assert re.fullmatch(r"  window_start=2023-11-14T22:13:28Z: (less than )?1 of [0-9,^]+", lines[-1])
    assert "warning: place allows 100 reports" in deployment.run("detect", "place", *PERIOD).stderr


def test_wrong_use_is_reported(deployment: Deployment) -> None:
    """Before anything connects."""
    for arguments, option in (
        (("carrier", *PERIOD, "--reports", "5"), "--reports"),
        (("carrier", "--from", "noon"), "--from"),
        (("carrier", "--from", "0", "--to", str(START)), "period"),
        (("carrier", *PERIOD, "--rate", "0"), "--rate"),
    ):
        ended = deployment.run("detect", *arguments)
        assert (ended.returncode, ended.stdout) == (2, ""), arguments
        assert option in ended.stderr.splitlines()[-1], arguments
