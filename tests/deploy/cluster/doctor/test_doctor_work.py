"""`deniable doctor` names what we may not do, what does not fit, and what a ledger lacks."""

import asyncio
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from aggregator.partition.ledger_store import LedgerStore
from aggregator.topics.collection_publisher import CollectionPublisher
from aggregator.topics.transaction_batches import Outgoing
from deploy.cli.commands import deniable
from deploy.cluster.connection.probe import RefusedError
from deploy.cluster.permissions.roles import Role
from deploy.cluster.topics.plan import plan
from estimators.mechanisms.krr import KRR
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.deploy.doctors import RUN_SECONDS, Patient, run, shown

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

HOUR = 3600.0
NOT_BEGUN = "no relay has begun on partitions 0, 1 of {}uploads: edges answer 503 until then"

STEPS = [
    "connection",
    "TLS",
    "authentication",
    "brokers",
    "authorization",
    "topics",
    "state",
    "parameters",
    "transactions",
    "clock",
    "budget",
]


@pytest.fixture
def patient(secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> Patient:
    return Patient(secured_broker, tmp_path, topic_prefix)


@pytest.fixture(scope="module")
def set_up(secured_broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Patient:
    """With topics, which nobody changes."""
    made = Patient(secured_broker, tmp_path_factory.mktemp("doctor"), f"test-{uuid4().hex[:12]}-")
    made.create_topics()
    return made


@pytest.mark.parametrize(
    ("role", "lacking"),
    [
        (Role.AGGREGATOR, "Read topic {}reports"),
        (Role.AGGREGATOR, "Read group {}aggregator"),
        (Role.AGGREGATOR, "Write topic {}state"),
        (Role.AGGREGATOR, "Write topic {}counts"),
        (Role.AGGREGATOR, "Write transactional ids {}aggregator-*"),
        (Role.PRODUCER, "Write topic {}reports"),
        (Role.READER, "Read topic {}estimates"),
        (Role.EDGE, "Write topic {}uploads"),
        (Role.RELAY, "Read topic {}uploads"),
        (Role.RELAY, "Read group {}relay"),
    ],
    ids=[
        "source not readable",
        "group not allowed",
        "state not writable",
        "changelog not writable",
        "transactions not allowed",
        "not allowed to write",
        "not allowed to read",
        "edge not allowed to write",
        "relay not allowed to read",
        "group of relays not allowed",
    ],
)
def test_missing_permissions_are_found(set_up: Patient, role: Role, lacking: str) -> None:
    what = lacking.format(set_up.prefix)
    name = f"no-{re.sub('[^a-z]+', '-', lacking.lower())}"
    configuration = set_up.user(name, role, but=what)
    results = run(configuration, role)
    article = "an" if role in (Role.AGGREGATOR, Role.EDGE) else "a"
    user = f"{set_up.prefix}{name}"
    # Without Read, or Write, a topic is hidden; so are its settings.
    assert shown(results).startswith(f"authorization: User:{user} may not {what}, ")
    assert shown(results).endswith(f"which {article} {role} needs")
    assert f"--acls --{role} {user}" in results["authorization"].findings[0].remedy
    assert {results[each].status for each in ("topics", "transactions", "clock skew")} == {"skipped"}


def test_role_with_all_its_permissions_passes(set_up: Patient) -> None:
    for role in Role:
        results = run(set_up.user(str(role), role), role)
        assert shown(results) == ("uploads: " + NOT_BEGUN.format(set_up.prefix) if role is Role.EDGE else "")
        unused = {"state", "transactions"} if role is not Role.AGGREGATOR else set()
        skipped = {name for name, result in results.items() if result.status == "skipped"}
        # Clock skew is measured by writing records; no worker has published its parameters; budgets are in
        # a folder.
        assert skipped - {"clock skew", "parameters", "budget store", "origins"} == unused


def test_lacking_permission_to_compare_parameters_is_a_warning(set_up: Patient) -> None:
    lacking = f"Read topic {set_up.prefix}collections"
    results = run(set_up.user("no-compare", Role.PRODUCER, but=lacking), Role.PRODUCER)
    assert shown(results) == ""
    (finding,) = results["authorization"].findings
    assert f"may not {lacking}, which a producer needs" in finding.what
    assert results["authorization"].status == "warning"
    assert results["parameters"].note == f"unknown: no permission: {lacking}"


def test_other_parameters_are_found_for_producer_and_worker(patient: Patient) -> None:
    patient.create_topics()
    configuration = patient.as_admin()
    (here,) = configuration.collections
    there = replace(here, mechanism=KRR.from_epsilon(2, 1.0))
    publisher = CollectionPublisher(configuration.cluster, configuration.topics.collections, [there], 1)
    assert asyncio.run(publisher.publish()) == ""
    for role in (Role.PRODUCER, Role.AGGREGATOR):
        assert shown(run(configuration, role)) == (
            "parameters: the workers reject reports of collection 'carrier', whose parameters differ: "
            "epsilon: 3 here, 1 at the workers"
        )


def test_topics_that_are_not_there(patient: Patient) -> None:
    results = run(patient.as_admin())
    assert results["topics"].status == "failed"
    (first, *_) = results["topics"].findings
    assert first.what == f"topic {patient.prefix}reports is absent"
    assert first.remedy == "run deniable topics create"
    assert results["state"].note == "topics failed"


def test_records_over_the_limit(patient: Patient) -> None:
    patient.create_topics()
    name = f"{patient.prefix}reports"
    with patient.admin() as admin:
        configs = {"max.message.bytes": "2000"}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs=configs)])
    results = run(patient.as_admin())
    assert f"topics: topic {name}: max.message.bytes must be at least 1048588, got 2000" in shown(results)


def test_ledgers_that_are_not_set_up(patient: Patient) -> None:
    topics = patient.as_admin().topics
    wanted = {
        each.name: {"num_partitions": 2, "replication_factor": 1, "configs": dict(each.settings)}
        for each in plan(topics)
    }
    with patient.admin() as admin:
        admin.create_topics(wanted, wait_for_metadata=True)
    results = run(patient.as_admin())
    assert shown(results) == f"state: topic {topics.state} is not set up"


def test_transaction_disturbs_no_worker_and_nobody_sees_it(set_up: Patient) -> None:
    configuration = set_up.as_admin()

    async def work() -> dict[bytes, bytes]:
        store = LedgerStore(configuration.cluster, configuration.topics, 0)
        await store.open()
        assert (await asyncio.to_thread(run, configuration))["transactions"].status == "ok"
        await store.commit([Outgoing(configuration.topics.state, 0, b"key", b"value")])
        await store.close()
        successor = LedgerStore(configuration.cluster, configuration.topics, 0)
        rows = await successor.open()
        await successor.close()
        return rows

    rows = asyncio.run(work())
    assert rows[b"key"] == b"value"
    assert b"doctor" not in rows


@pytest.mark.parametrize(("hours", "which"), [(1, "3600 s ahead of"), (-1, "3600 s behind")])
def test_wrong_clock_is_reported(set_up: Patient, hours: int, which: str) -> None:
    results = run(set_up.as_admin(), clock=lambda: time.time() + hours * HOUR)
    assert shown(results) == f"clock skew: this clock is {which} Kafka's"


def test_producer_compares_its_clock_without_writing(patient: Patient) -> None:
    patient.create_topics()
    configuration = patient.user("producer", Role.PRODUCER)
    assert run(configuration, Role.PRODUCER)["clock skew"].status == "skipped"
    sender = KafkaProducer(**patient.broker.admin_settings())
    sender.send(configuration.topics.reports, b"record", partition=1).get(10)
    sender.close()
    fresh = run(configuration, Role.PRODUCER)["clock skew"].note
    assert fresh.startswith(("not behind Kafka's; unknown whether ahead: the newest record is ", "behind "))
    late = run(configuration, Role.PRODUCER, clock=lambda: time.time() - HOUR)
    assert "s or more behind Kafka's" in shown(late)
    early = run(configuration, Role.PRODUCER, clock=lambda: time.time() + HOUR)["clock skew"]
    assert early.note.startswith("not behind Kafka's; unknown whether ahead: the newest record is 3")


def write_file(patient: Patient, password: str) -> None:
    (patient.folder / "password").write_text(password)
    security = {
        "ca_file": str(patient.broker.authority.certificate_file),
        "username": ADMIN,
        "password_file": "password",
    }
    kafka = {
        "bootstrap_servers": patient.broker.sasl_servers,
        "topic_prefix": patient.prefix,
        "security": security,
    }
    entry = {"name": "carrier", "mechanism": "k-rr", "size": 2, "epsilon": 1.0, "window_seconds": 60}
    collection = {**entry, "grace_seconds": 30, "budget": "none"}
    text = json.dumps({"revision": 1, "kafka": kafka, "collections": [collection]})
    (patient.folder / "deniable.yaml").write_text(text)


@pytest.mark.parametrize(
    "command",
    [
        ("topics", "check"),
        ("topics", "create"),
        ("watch", "carrier"),
        ("aggregate", "--web-port", "0"),
        ("produce", "carrier", "--field", "value", "--input", "values.csv", "--no-clients"),
    ],
    ids=["topics check", "topics create", "watch", "aggregate", "produce"],
)
def test_ordinary_commands_name_the_cause_too(
    patient: Patient, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(patient.folder)
    write_file(patient, "wrong")
    Path("values.csv").write_text("value\n0\n")
    began = time.monotonic()
    result = CliRunner().invoke(deniable, command)
    assert time.monotonic() - began < RUN_SECONDS
    assert isinstance(result.exception, RefusedError), result.output
    assert "the password is wrong, or the user unknown" in str(result.exception)


def timed(folder: Path, *arguments: str) -> tuple["subprocess.CompletedProcess[str]", float]:
    """`doctor` as a process of its own, and the seconds that it took, its start and its end included."""
    command = [sys.executable, "-m", "deploy", "doctor", *arguments]
    began = time.monotonic()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return ended, time.monotonic() - began


def test_command_prints_continuously_and_ends_with_1(patient: Patient) -> None:
    write_file(patient, "wrong")
    ended, seconds = timed(patient.folder)
    print(f"{ended.stdout}in {seconds:.1f} s")  # noqa: T201 - to be read with pytest -s
    assert seconds < RUN_SECONDS
    assert (ended.returncode, ended.stderr) == (1, "")
    assert [line.split()[0] for line in ended.stdout.splitlines() if line[0] != " "] == STEPS
    assert "\nauthentication  failed: 127.0.0.1:" in ended.stdout
    as_json, _ = timed(patient.folder, "--json")
    lines = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [each["status"] for each in lines] == ["ok", lines[1]["status"], "failed", *["skipped"] * 8]
    assert lines[2]["findings"][0]["remedy"].startswith("check username and password_file")
