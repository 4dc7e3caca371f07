"""`deniable doctor` names what we may not do, what does not fit, and what a ledger lacks."""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer

from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.topics.collection_publisher import CollectionPublisher
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.connection.probe import RefusedError
from deniable.cluster.permissions.roles import Role, permissions_of
from deniable.cluster.topics.plan import plan
from deniable.deploy.cli.commands import deniable
from deniable.estimators.mechanisms.krr import KRR
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.deploy.doctors import Patient, run, shown
from tests.support.producers.topics import change

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
    "replicas",
    "state",
    "parameters",
    "transactions",
    "capabilities",
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


#: What is taken away from each role, in the order in which the doctor names it.
LACKING = {
    Role.PRODUCER: ("Write topic {}reports",),
    Role.AGGREGATOR: (
        "Read topic {}reports",
        "Write topic {}state",
        "Write topic {}counts",
        "Read group {}aggregator",
        "Write transactional ids {}aggregator-*",
    ),
    Role.READER: ("Read topic {}estimates",),
    Role.EDGE: ("Write topic {}uploads",),
    Role.RELAY: ("Read topic {}uploads", "Read group {}relay"),
}


@pytest.mark.all
def test_each_role_needs_its_permissions_and_passes_with_them(set_up: Patient) -> None:
    for role, names in LACKING.items():
        lacking = [name.format(set_up.prefix) for name in names]
        configuration = set_up.user(str(role), role, but=lacking)
        results = run(configuration, role)
        article, user = "an" if role in (Role.AGGREGATOR, Role.EDGE) else "a", f"{set_up.prefix}{role}"
        said = f"authorization: User:{user} may not {', '.join(lacking)}, which {article} {role} needs"
        assert shown(results) == said
        assert f"--acls --{role} {user}" in results["authorization"].findings[0].remedy
        assert {results[each].status for each in ("topics", "transactions", "clock skew")} == {"skipped"}
        set_up.allow(user, permissions_of(role, configuration.topics))
        results = run(configuration, role)
        assert shown(results) == ("uploads: " + NOT_BEGUN.format(set_up.prefix) if role is Role.EDGE else "")
        unused = {"state", "transactions"} if role is not Role.AGGREGATOR else set()
        skipped = {name for name, result in results.items() if result.status == "skipped"}
        # Clock skew is measured by writing records; no worker has published its parameters; budgets are in
        # a folder.
        assert skipped - {"clock skew", "parameters", "budget store", "origins"} == unused, role


def test_lacking_permission_to_compare_parameters_is_a_warning(set_up: Patient) -> None:
    lacking = f"Read topic {set_up.prefix}collections"
    results = run(set_up.user("no-compare", Role.PRODUCER, but=[lacking]), Role.PRODUCER)
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


def test_topics_that_are_absent_unprepared_or_set_otherwise_are_found(patient: Patient) -> None:
    absent = run(patient.as_admin())
    (first, *_) = absent["topics"].findings
    assert (first.what, first.remedy) == (
        f"topic {patient.prefix}reports is absent",
        "run deniable topics create",
    )
    assert (absent["topics"].status, absent["state"].note) == ("failed", "topics failed")
    topics = patient.as_admin().topics
    wanted = {
        each.name: {"num_partitions": 2, "replication_factor": 1, "configs": dict(each.settings)}
        for each in plan(topics)
    }
    with patient.admin() as admin:
        admin.create_topics(wanted, wait_for_metadata=True)
        assert shown(run(patient.as_admin())) == f"state: topic {topics.state} is not set up"
        change(admin, topics.reports, {"max.message.bytes": "2000"})
    results = run(patient.as_admin())
    said = f"topics: topic {topics.reports}: max.message.bytes must be at least 1048588, got 2000"
    assert said in shown(results)


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


def test_wrong_clock_is_reported(set_up: Patient) -> None:
    for hours, which in ((1, "3600 s ahead of"), (-1, "3600 s behind")):
        results = run(set_up.as_admin(), clock=lambda: time.time() + hours * HOUR)  # noqa: B023 - called here
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


def test_ordinary_commands_name_the_cause_too(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(patient.folder)
    write_file(patient, "wrong")
    Path("values.csv").write_text("value\n0\n")
    for line in (
        "topics check",
        "topics create",
        "watch carrier",
        "aggregate --web-port 0",
        "produce carrier --field value --input values.csv --no-clients",
    ):
        result = CliRunner().invoke(deniable, line.split())
        assert isinstance(result.exception, RefusedError), (line, result.output)
        assert "the password is wrong, or the user unknown" in str(result.exception), line


def test_command_prints_continuously_and_ends_with_1(patient: Patient) -> None:
    """As a process, since it ends without what Python tidies up."""
    write_file(patient, "wrong")

    def doctor(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "deniable", "doctor", *arguments]
        return subprocess.run(command, cwd=patient.folder, capture_output=True, text=True)

    ended = doctor()
    assert (ended.returncode, ended.stderr) == (1, "")
    assert [line.split()[0] for line in ended.stdout.splitlines() if line[0] != " "] == STEPS
    assert "\nauthentication  failed: 127.0.0.1:" in ended.stdout
    lines = [json.loads(line) for line in doctor("--json").stdout.splitlines()]
    assert [each["status"] for each in lines] == ["ok", lines[1]["status"], "failed", *["skipped"] * 10]
    assert lines[2]["findings"][0]["remedy"].startswith("check username and password_file")
