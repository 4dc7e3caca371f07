"""A producer whose parameters are not the workers' is told so, by every command and in Python."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from deniable.config.file import load
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from deniable.protocol.marker import MARKER
from tests.support.deployments import Deployment
from tests.support.processes import wait_until
from tests.support.producers.topics import read

pytestmark = pytest.mark.broker

REJECTED = (
    "the workers reject reports of collection 'carrier', whose parameters differ: epsilon: 3 here, 1 at the "
    "workers"
)


def deployment(folder: Path, servers: str, prefix: str, *replacements: tuple[str, str]) -> Deployment:
    folder.mkdir()
    made = Deployment(folder, servers, prefix)
    edit(made, *replacements)
    return made


def edit(deployment: Deployment, *replacements: tuple[str, str]) -> None:
    file = deployment.folder / "deniable.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def worker(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    """With another epsilon."""
    return deployment(tmp_path / "worker", broker, topic_prefix, ("epsilon: 3.0", "epsilon: 1.0"))


@pytest.fixture
def sender(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    return deployment(tmp_path / "sender", broker, topic_prefix)


@pytest.mark.all
def test_python_and_produce_are_told_that_parameters_differ(worker: Deployment, sender: Deployment) -> None:
    """A producer that started before the workers hears later; `produce` ends before it reads its input."""
    worker.create_topics()
    config = producer_config(load(sender.folder / "deniable.yaml", environment={}))
    config = replace(config, timing=ProducerTiming(comparison=0.5), pack_seconds=0.2)
    config = replace(config, data_dir=sender.folder / "python")
    differs = ("deniable_producer_parameters_differ", {"collection": "carrier"})
    with Producer(config) as producer:
        producer.report("carrier", "AA", None)
        producer.flush()
        assert producer.reasons_not_ready() == []
        assert producer.registry.get_sample_value(*differs) == 0
        with worker.running("worker.log", "aggregate", "--web-port", "0"):
            assert wait_until(producer.reasons_not_ready), worker.output("worker.log")
            (reason,) = producer.reasons_not_ready()
            assert reason == f"{REJECTED}. Use the workers' collection file here"
            assert producer.registry.get_sample_value(*differs) == 1
            producer.report("carrier", "AA", None)
            said = "a producer has this collection with other parameters"
            assert wait_until(lambda: said in worker.output("worker.log")), worker.output("worker.log")
            producer.report("place", "JFK", None)
            producer.flush()
            produce(sender)
            compared = worker.run("replay")
            assert compared.stdout.endswith("difference: 0\n"), compared.stderr
    rejected = [json.loads(each.value) for each in read(worker.servers, f"{worker.prefix}rejected")]
    assert {(each["reason"], each["detail"], each["collection"]) for each in rejected} == {
        ("unknown_collection", "same name, other parameters", "carrier")
    }


def produce(sender: Deployment) -> None:
    """Try with other parameters, another name, and what the workers have."""
    given, options = b"carrier\nAA\n", ("--field", "carrier", "--no-clients")
    reports = f"{sender.prefix}reports"
    before = [MARKER, *(each.value for each in read(sender.servers, reports))]
    ended = sender.run("produce", "carrier", *options, given=given)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: nothing was sent: {REJECTED}. Use the workers' collection file here\n"
    assert not (sender.folder / ".deniable" / "secret").exists()
    edit(sender, ("name: carrier", "name: carriers"))
    ended = sender.run("produce", "carriers", *options, given=given)
    assert ended.returncode == 1
    assert "'carriers'" in ended.stderr
    assert {each.value for each in read(sender.servers, reports)} <= {*before}
    edit(sender, ("name: carriers", "name: carrier"), ("epsilon: 3.0", "epsilon: 1.0"))
    ended = sender.run("produce", "carrier", *options, given=given)
    assert ended.returncode == 0, ended.stderr
    (pack,) = (each for each in read(sender.servers, reports) if each.value not in before)
    assert pack.headers == []


@pytest.mark.nightly
def test_deployment_without_the_topic_works_on(sender: Deployment) -> None:
    sender.create_topics()
    with KafkaAdminClient(bootstrap_servers=sender.servers) as admin:
        admin.delete_topics([f"{sender.prefix}collections"])
        assert wait_until(lambda: f"{sender.prefix}collections" not in admin.list_topics(), 60)
    with sender.running("worker.log", "aggregate", "--web-port", "0"):
        sender.wait_until_ready("worker.log")
        options = ("--field", "carrier", "--no-clients")
        ended = sender.run("produce", "carrier", *options, given=b"carrier\nAA\n")
        assert (ended.returncode, ended.stderr.count("\n")) == (0, 4), ended.stderr
        said = f"topic {sender.prefix}collections is absent"
        assert wait_until(lambda: said in sender.output("worker.log"), 60)
        assert "deniable topics create" in sender.output("worker.log")
        compared = sender.run("replay")
        assert compared.stdout.endswith("difference: 0\n"), compared.stderr
    doctor = sender.doctor()
    assert (doctor.returncode, "parameters      skipped: unknown: topic" in doctor.stdout) == (0, True)
