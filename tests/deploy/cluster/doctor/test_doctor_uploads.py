"""`deniable doctor` of edges and relays: relays that are absent or have another secret; origins."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics.checks import of_uploads
from deniable.config.file import Configuration, load
from deniable.config.relay_secret import SECRET_FILE
from deniable.config.sections import EdgeSection
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.doctor.examination import Result
from deniable.deploy.cluster.doctor.uploads import origins
from deniable.relay.control import encode_marker, encode_settings
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.deploy.collection_texts import WHOLE
from tests.support.deploy.doctors import Patient, run, shown
from tests.support.relay.logs import KEYS, SHORT, settings_of

PARTITIONS = 2


@pytest.fixture
def patient(secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> Patient:
    made = Patient(secured_broker, tmp_path, topic_prefix)
    made.create_topics()
    return made


def write_secret(patient: Patient, content: bytes) -> None:
    file = patient.folder / SECRET_FILE
    file.parent.mkdir(exist_ok=True)
    file.touch(0o600)
    file.write_bytes(content)


def examined(configuration: Configuration, role: Role = Role.RELAY) -> tuple[Result, str]:
    results = run(configuration, role)
    return results["uploads"], shown(results)


@pytest.mark.all
@pytest.mark.broker
@pytest.mark.usefixtures("kafka_jars")
def test_what_becomes_of_uploads_is_found(patient: Patient) -> None:
    topic, group = f"{patient.prefix}uploads", f"{patient.prefix}relay"
    relay = patient.user("relay", Role.RELAY)
    result, _ = examined(relay)
    assert (result.status, result.findings[0].what) == (
        "warning",
        f"no relay has begun on partitions 0, 1 of {topic}: edges answer 503 until then",
    )
    client = patient.broker.admin_settings()
    producer = KafkaProducer(**client)
    for each in range(PARTITIONS):
        for record in (encode_settings(KEYS, each, settings_of(SHORT)), encode_marker(KEYS, each)):
            producer.send(topic, record, partition=each).get(60)
    producer.close()
    assert (
        examined(patient.user("edge", Role.EDGE), Role.EDGE)[0].note == "relays have begun on every partition"
    )
    absent = f"uploads: no relay is in the group {group}, and 4 records wait"
    assert examined(relay)[1].startswith(f"{absent}\nuploads: secret file ")
    write_secret(patient, bytes(32))
    assert examined(relay)[1] == (
        f"{absent}\nuploads: relays with another secret than this machine's wrote the settings of partitions "
        f"0, 1 of {topic}, so a relay here ends with status 3"
    )
    write_secret(patient, bytes(range(32)))
    assert examined(relay)[1] == absent
    consumer = KafkaConsumer(**client, group_id=group, enable_auto_commit=False)
    sources = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    consumer.assign(sources)
    consumer.commit(dict.fromkeys(sources, OffsetAndMetadata(2, "", -1)))
    consumer.close()
    result, said = examined(relay)
    assert (said, result.note) == (
        "",
        "relays have begun on every partition, and have this machine's secret",
    )


def test_a_file_without_the_sections_is_named(tmp_path: Path) -> None:
    """`topics create` would not create the topic."""
    file = tmp_path / "deniable.yaml"
    file.write_text(WHOLE)
    (finding,) = of_uploads(Mock(), load(file, environment={}).topics, Role.EDGE, ())
    assert str(finding) == (
        "no device can upload. The collection file has no section edge or relay; write relay: {} into it, "
        "then run deniable topics create"
    )


def test_origins_that_no_browser_sends_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "deniable.yaml").write_text(WHOLE)
    given = ["https://a.example", "https://a.example:443", "http://b.example:99999"]
    edge = replace(load(tmp_path / "deniable.yaml", environment={}), edge=EdgeSection(allow_origins=given))
    answer = origins(Case(edge, Role.EDGE, lambda: 0.0), 1.0)
    assert [(each.what, each.remedy, each.is_warning) for each in answer.findings] == [
        ("edge.allow_origins: no browser sends 'https://a.example:443'", "write https://a.example", True),
        ("edge.allow_origins: no browser sends 'http://b.example:99999'", "leave it out", True),
    ]
