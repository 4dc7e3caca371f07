"""Field `producer.deliver`: an edge instead of Kafka, and what then needs no Kafka."""

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.config.file import CollectionFileError, load
from deniable.config.settings.edge_address import EdgeAddress
from deniable.deploy.cluster.doctor.command import doctor
from deniable.deploy.cluster.topics.command import topics
from deniable.deploy.offline.check import check
from deniable.deploy.query.inspection.command import inspect
from deniable.deploy.query.watch import watch
from deniable.producers.opening.from_file import producer_config
from tests.support.messages import PinMessages

COLLECTIONS = """\
collections:
  - {name: c, mechanism: k-rr, size: 10, epsilon: 3, window_seconds: 60, grace_seconds: 30, budget: none}
"""
KEY = "A" * 43 + "="


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def write(file: Path, *sections: str) -> None:
    file.write_text(COLLECTIONS + "".join(f"{each}\n" for each in sections))


def load_producer(file: Path, fields: str, **environment: str) -> None:
    write(file, f"producer: {{{fields}}}")
    load(file, environment=environment)


def test_default_is_kafka(file: Path) -> None:
    write(file)
    loaded = load(file, environment={})
    assert loaded.producer.deliver == "kafka"
    assert producer_config(loaded).edge is None
    assert producer_config(loaded).destination == "127.0.0.1:9092"


def test_edge_is_that_of_the_producer(file: Path) -> None:
    fields = f'deliver: "https://edge.example", edge_ca_file: ca.pem, edge_public_key: "{KEY}"'
    write(file, f"producer: {{{fields}}}")
    made = producer_config(load(file, environment={}))
    assert made.edge == EdgeAddress("https://edge.example", file.parent / "ca.pem", KEY)
    assert (made.destination, made.receiver) == ("https://edge.example", "the edge")


def test_environment_sets_it(file: Path) -> None:
    write(file)
    environment = {"DENIABLE_PRODUCER__DELIVER": "http://127.0.0.1:8330"}
    assert producer_config(load(file, environment=environment)).edge == EdgeAddress("http://127.0.0.1:8330")


@pytest.mark.parametrize("is_in_file", [True, False])
def test_environment_pins_the_key_of_an_edge(file: Path, is_in_file: bool) -> None:
    """Whether the file or another variable names the edge, and in whatever order the variables come."""
    write(file, *['producer: {deliver: "http://127.0.0.1:8330"}'][: int(is_in_file)])
    environment = {"DENIABLE_PRODUCER__EDGE_PUBLIC_KEY": KEY}
    if not is_in_file:
        environment["DENIABLE_PRODUCER__DELIVER"] = "http://127.0.0.1:8330"
    edge = producer_config(load(file, environment=environment)).edge
    assert edge == EdgeAddress("http://127.0.0.1:8330", None, KEY)


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    fields = {
        "an edge of another machine in clear": "deliver: http://edge.example",
        "no URL": "deliver: edge.example:8330",
        "a list": "deliver: [kafka]",
        "a key without an edge": f'edge_public_key: "{KEY}"',
        "authorities without an edge": "edge_ca_file: ca.pem",
        "an empty name of a file": "deliver: https://e.example, edge_ca_file: ''",
        "authorities for an edge in clear": "deliver: http://localhost, edge_ca_file: a",
        "a key is too short": "deliver: https://e.example, edge_public_key: abc",
    }
    pin_messages(
        {what: partial(load_producer, file, field) for what, field in fields.items()}
        | {
            "a variable has a key without an edge": partial(
                load_producer, file, "", DENIABLE_PRODUCER__EDGE_PUBLIC_KEY=KEY
            )
        }
    )


def test_credentials_of_kafka_are_not_asked_for(file: Path) -> None:
    """A user name without a password: commands that need Kafka say so, a producer for an edge does not."""
    kafka = 'kafka: {bootstrap_servers: "kafka.example:9093", security: {username: shop}}'
    write(file, kafka, "producer: {deliver: https://edge.example}")
    loaded = load(file, environment={})
    assert producer_config(loaded).edge is not None
    with pytest.raises(CollectionFileError, match="password"):
        _ = loaded.cluster


def test_commands_that_need_kafka_say_so(file: Path, pin_messages: PinMessages) -> None:
    write(file, "producer: {deliver: https://edge.example}")
    commands = (
        (watch, ["c"]), (topics, ["create"]), (topics, ["check"]), (doctor, []), (inspect, ["reports"])
    )  # fmt: skip
    said = set()
    for command, arguments in commands:
        ended = CliRunner().invoke(command, [*arguments, "--config", str(file)])
        assert ended.exit_code != 0
        said.add(f"{ended.output}{ended.exception}")
    pin_messages({"no Kafka is named": lambda: "\n".join(said)})
    ended = CliRunner().invoke(check, ["--config", str(file)])
    assert ended.exit_code == 0
    assert "Kafka" not in ended.output


@pytest.mark.parametrize("deliver", ["kafka", "http://127.0.0.1:8330"])
def test_kafka_of_this_machine_is_expected_beside_an_edge_of_this_machine(file: Path, deliver: str) -> None:
    write(file, f'producer: {{deliver: "{deliver}"}}')
    assert load(file, environment={}).cluster.bootstrap_servers == "127.0.0.1:9092"


def test_named_brokers_or_the_section_edge_mean_that_there_is_a_kafka(file: Path) -> None:
    write(file, "producer: {deliver: https://edge.example}")
    assert load(file, "127.0.0.1:9093", environment={}).cluster.bootstrap_servers == "127.0.0.1:9093"
    environment = {"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9094"}
    assert load(file, environment=environment).cluster.bootstrap_servers == "127.0.0.1:9094"
    write(file, "producer: {deliver: https://edge.example}", "edge: {}")
    assert load(file, environment={}).cluster.bootstrap_servers == "127.0.0.1:9092"
