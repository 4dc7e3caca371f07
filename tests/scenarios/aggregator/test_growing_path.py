"""Growing at each final window on a real broker: what is found is listed, also after the worker is killed."""

import asyncio
import json
import os
import signal
import time
from collections import defaultdict
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest

import deniable
from deniable.cluster.reading.topic_reader import records_since
from deniable.config.file import load
from tests.support.deployments import Deployment

pytestmark = pytest.mark.broker

COLLECTION = """\
  - {name: search, mechanism: prefix-tree, epsilon: 4.0, lengths: [2, 4, 5], hash_functions: 400,
     alphabet: abcdefghijklmnopqrstuvwxyz日本, candidates: [coffee], grow: {windows: 4},
     window_seconds: 4, grace_seconds: 1, minimum_reports: 500, budget: none}
"""
#: Texts by their share in tenths; the last tenth are different ones.
TENTHS = ["coffee", "coffee", "coffee", "milk", "milk", "milk", "日本", "日本", "日本"]
FOUND = {"milk", "日\\xe6\\x9c"}  # the last level cuts the second character
BATCH, PAUSE, LIMIT_SECONDS = 2000, 0.5, 240


def estimates(file: Path) -> list[dict[str, Any]]:
    """All estimates of the collection in the order of the log: both windows and their revisions."""
    loaded = load(file, environment={})
    topic, partitions = loaded.topics.estimates, range(loaded.topics.partitions)

    async def read() -> list[dict[str, Any]]:
        async with aclosing(records_since(loaded.cluster, topic, partitions, 0)) as records:
            found = [json.loads(record.value or b"") async for _, record in records]
        return [each for each in found if each["collection"] == "search"]

    return asyncio.run(read())


def send_until_listed(producer: deniable.Producer, file: Path, since: int) -> None:
    """Report until a final estimate of a window that starts later lists the frequent texts."""
    deadline, number = time.monotonic() + LIMIT_SECONDS, 0
    while time.monotonic() < deadline:
        for _ in range(8):
            values = [TENTHS[n % 10] if n % 10 < 9 else f"rare{n}" for n in range(number, number + BATCH)]
            producer.report("search", values, clients=None)
            number += BATCH
            time.sleep(PAUSE)
        finals = [each for each in estimates(file) if each["final"] and each["window_start"] > since]
        if any(set(each["values"]) >= FOUND for each in finals):
            return
    pytest.fail(f"no final estimate lists {FOUND}")


@pytest.mark.all
def test_found_texts_are_listed_and_keep_their_moment_when_the_worker_is_killed(
    broker: str, tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    file = tmp_path / "deniable.yaml"
    file.write_text(file.read_text() + COLLECTION)
    deployment.create_topics()
    with deniable.open_producer(file) as producer:
        with deployment.running("one.log", "aggregate", "--web-port", "0") as worker:
            deployment.wait_until_ready("one.log")
            send_until_listed(producer, file, 0)
            os.kill(worker.pid, signal.SIGKILL)
        newest = max(each["window_start"] for each in estimates(file))
        with deployment.running("two.log", "aggregate", "--web-port", "0"):
            deployment.wait_until_ready("two.log")
            send_until_listed(producer, file, newest)
            with urlopen(f"{deployment.address('two.log')}metrics") as answer:  # noqa: S310 - on loopback
                metrics = answer.read().decode()
            replayed = deployment.run("replay")
    assert "difference: 0" in replayed.stdout, replayed.stderr
    assert 'deniable_found_texts{collection="search"}' in metrics
    assert "deniable_growing_seconds_count" in metrics
    records = estimates(file)
    moments: defaultdict[str, set[int]] = defaultdict(set)
    for each in records:
        assert each["values"][0] == "coffee"
        assert each["discovered_at"][0] is None
        assert each["diagnostics"]["found_texts"] == len(each["values"]) - 1
        for text, moment in list(zip(each["values"], each["discovered_at"], strict=True))[1:]:
            moments[text].add(moment)
            assert moment <= each["window_start"]
            assert moment % 4 == 0
    assert all(len(moments[text]) == 1 for text in FOUND)
    shares = {"coffee": 0.3, "milk": 0.3, "日\\xe6\\x9c": 0.3}
    for each in (each for each in records if each["final"]):
        for text, share, error in zip(each["values"], each["frequency"], each["std_error"], strict=True):
            # 6 standard errors: a false alarm in 1e9 estimates.
            assert error is not None
            assert text not in shares or abs(share - shares[text]) < 6 * error
