"""A deployment with final windows of two collections, and a bucket, for tests of reading and exporting."""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.analysis.s3_server import S3Server, s3_server
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

VALUES = {"carrier": ["AA"] * 300 + ["B6"] * 150 + ["9E"] * 50, "place": ["JFK", "LAX", "JFK", "SFO"] * 100}
ROUNDS = 3


@pytest.fixture(scope="session")
def counted(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A worker that has counted final windows of two seconds, and still runs; its log is `worker.log`."""
    pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
    deployment = Deployment(tmp_path_factory.mktemp("counted"), broker, f"test-{uuid4().hex[:12]}-")
    deployment.create_topics()
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        for number in range(ROUNDS):
            for name, values in VALUES.items():
                file = deployment.folder / f"{name}-{number}.csv"
                file.write_text("\n".join([name, *values]) + "\n")
                options = ("--input", file.name, "--field", name, "--no-clients")
                done = deployment.run("produce", name, *options)
                assert done.returncode == 0, done.stderr
            time.sleep(2 - time.time() % 2)  # into the next window: each round has one or more to itself
        assert wait_until(lambda: all(_reports(deployment, name) for name in VALUES), 90)
        yield deployment


def _reports(deployment: Deployment, collection: str) -> bool:
    """Whether all reports are in final windows."""
    found = sum(each["reports"] for each in newest_finals(deployment, collection).values())
    return found == ROUNDS * len(VALUES[collection])


def newest_finals(deployment: Deployment, collection: str) -> dict[int, dict[str, Any]]:
    """The newest final record of each window, by start, as any client of Kafka reads the topic."""
    found: dict[int, dict[str, Any]] = {}
    topic = f"{deployment.prefix}estimates"
    with KafkaConsumer(bootstrap_servers=deployment.servers, isolation_level="read_committed") as consumer:
        places = [TopicPartition(topic, number) for number in range(2)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            for record in (each for batch in consumer.poll(timeout_ms=200).values() for each in batch):
                estimate = json.loads(record.value)
                if estimate["collection"] == collection and estimate["final"]:
                    known = found.get(estimate["window_start"])
                    if known is None or known["revision"] <= estimate["revision"]:
                        found[estimate["window_start"]] = estimate
    return dict(sorted(found.items()))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, whose address and keys exporters find in their environment."""
    pytest.importorskip("obstore", reason="the extra s3 is not installed")
    with s3_server(tmp_path_factory.mktemp("store")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables().items():
            patch.setenv(name, value)
        yield server


def warnings_of(call: Callable[[], object]) -> str:
    """What a call warns of, one warning a line; each at the line of the call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert {each.filename for each in found} <= {call.__code__.co_filename}
    return "\n".join(f"{each.category.__name__}: {each.message}" for each in found)
