"""`deniable doctor` says what brokers can do: ok on a real one, cannot on one that lacks it, or unknown."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import UnsupportedVersionError
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection import groups
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.topics.plan import DAY_MILLISECONDS, TopicPlan, plan
from deniable.config.file import Configuration
from deniable.deploy.cluster.doctor.capabilities import questions, transactions
from deniable.deploy.cluster.doctor.capabilities.needs import NEEDS, Need, capabilities
from deniable.deploy.cluster.doctor.capabilities.questions import CANNOT, EXPIRATION, OK, UNKNOWN, Question
from deniable.deploy.cluster.doctor.case import Case, StepAnswer
from deniable.deploy.cluster.doctor.command import lines_of
from deniable.deploy.cluster.doctor.examination import Result
from deniable.protocol.topic_names import Topics
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.deploy.doctors import Patient, run, shown
from tests.support.messages import PinMessages
from tests.support.producers.topics import change

SECONDS = 60.0
of_broker = pytest.mark.broker


@pytest.fixture(scope="module")
def set_up(secured_broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Patient:
    """With topics, whose settings nobody changes."""
    made = Patient(secured_broker, tmp_path_factory.mktemp("doctor"), f"test-{uuid4().hex[:12]}-")
    made.create_topics()
    return made


def answers(result: Result | StepAnswer) -> dict[str, str]:
    return {each.name: each.answer for each in result.capabilities}


def said(result: Result | StepAnswer, name: str) -> str:
    return next(f"{each.answer}: {each.what}" for each in result.capabilities if each.name == name)


def tried(patient: Patient) -> StepAnswer:
    """The trial and the questions alone: earlier steps would have refused what these shall find."""
    configuration = patient.as_admin()
    case = Case(configuration, Role.AGGREGATOR, time.time, usable=configuration.cluster.addresses())
    transactions.transactions(case, SECONDS)
    return capabilities(case, SECONDS)


@of_broker
def test_a_broker_that_can_do_all_is_ok_for_every_role(set_up: Patient) -> None:
    for role in Role:
        result = run(set_up.as_admin(), role)["capabilities"]
        assert answers(result) == {need.name: OK for need in NEEDS if role in need.roles}
        assert result.status == "ok"
        head, *lines = lines_of(result).splitlines()
        assert (head.split(), len(lines)) == (["capabilities", "ok"], len(result.capabilities))
        assert lines[-1].startswith(f"{'':16}authorizer      ok: it lists ")


@of_broker
def test_what_a_role_may_not_ask_is_unknown_and_no_failure(set_up: Patient) -> None:
    of_cluster = "unknown: not permitted to ask (DescribeConfigs on the cluster)"
    for role in Role:
        result = run(set_up.user(f"asks-{role}", role), role)["capabilities"]
        unknown = {name for name, answer in answers(result).items() if answer == UNKNOWN}
        assert unknown == ({"quotas", "compaction"} if role is Role.AGGREGATOR else {"quotas"}), role
        assert {said(result, name) for name in unknown} == {of_cluster}
        note = f"{len(unknown)} of {len(result.capabilities)} unknown"
        assert lines_of(result).splitlines()[0] == f"{'capabilities':16}ok: {note}"
        assert OK in answers(result).values()
        assert result.status == "ok"


@of_broker
def test_before_topics_exist_it_is_asked_whether_they_could_be_created(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient(secured_broker, tmp_path, topic_prefix)
    before = run(patient.as_admin())["capabilities"]
    assert said(before, "topic settings") == "ok: 9 absent topics would be created with them"
    assert said(before, "fencing").startswith("unknown: not tried: ")
    worker = run(patient.user("worker", Role.AGGREGATOR))["capabilities"]
    assert said(worker, "topic settings") == "unknown: not permitted to ask (Create on the topics)"

    def refused(topics: Topics) -> list[TopicPlan]:
        return [replace(each, settings={**each.settings, "cleanup.policy": "none"}) for each in plan(topics)]

    monkeypatch.setattr(questions, "plan", refused)
    result = run(patient.as_admin())["capabilities"]
    assert said(result, "topic settings").startswith(f"cannot: topic {topic_prefix}reports is refused: ")
    assert result.status == "failed"
    with patient.admin() as admin:
        assert not [name for name in admin.list_topics() if name.startswith(topic_prefix)]


@of_broker
def test_a_broker_that_keeps_senders_times_cannot(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str
) -> None:
    patient = Patient(secured_broker, tmp_path, topic_prefix)
    patient.create_topics()
    state = patient.as_admin().topics.state
    with patient.admin() as admin:
        change(admin, state, {"message.timestamp.type": "CreateTime"})
    answer = tried(patient)
    assert {name for name, each in answers(answer).items() if each == CANNOT} == {
        "append times",
        "topic settings",
    }
    assert {each.is_warning for each in answer.findings} == {False}


@of_broker
def test_a_broker_without_fencing_or_isolation_cannot(
    set_up: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfenced(case: Case) -> "AIOKafkaProducer[bytes, bytes]":
        return AIOKafkaProducer(
            **case.cluster.client_settings(), transactional_id=f"{set_up.prefix}{uuid4().hex}"
        )

    with monkeypatch.context() as patched:
        patched.setattr(transactions, "_producer", unfenced)
        answer = tried(set_up)
    assert (answers(answer)["fencing"], answer.findings[0].is_warning) == (CANNOT, False)
    with monkeypatch.context() as patched:
        patched.setattr(transactions, "assigned_consumer", partial(assigned_consumer, committed=False))
        answer = tried(set_up)
    assert (answers(answer)["read_committed"], answer.findings[0].is_warning) == (CANNOT, False)


def test_a_broker_that_refuses_transactions_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> None:
        raise UnsupportedVersionError

    monkeypatch.setattr(transactions, "_by_leader", lambda _: {1: 0})
    monkeypatch.setattr(transactions, "_try", refused)
    configuration = cast(Configuration, SimpleNamespace(topics=Topics("d-", 2)))
    case = Case(configuration, Role.AGGREGATOR, time.time)
    (finding,) = transactions.transactions(case, SECONDS).findings
    assert "UnsupportedVersionError" in finding.what
    (need,) = [each for each in NEEDS if each.name == "transactions"]
    asked = Question(cast(KafkaAdminClient, None), case)
    vars(asked)["offered"] = need.requests
    assert need.answer(asked).answer == CANNOT


@of_broker
def test_an_open_transaction_of_a_worker_fails_nothing(set_up: Patient) -> None:
    """Readers wait for it to end, for 15 s if the worker has died."""
    configuration = set_up.as_admin()

    async def examined() -> StepAnswer:
        worker: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(
            **configuration.cluster.client_settings(), transactional_id=f"{set_up.prefix}{uuid4().hex}"
        )
        async with worker:
            await worker.begin_transaction()
            await worker.send_and_wait(configuration.topics.state, b"", key=b"row", partition=0)
            answer = await asyncio.to_thread(tried, set_up)
            await worker.abort_transaction()
        return answer

    answer = asyncio.run(examined())
    assert (answers(answer)["read_committed"], answers(answer)["fencing"]) == (UNKNOWN, OK)
    assert answer.findings == []


@contextmanager
def remembering(admin: KafkaAdminClient, milliseconds: int) -> Iterator[None]:
    """Let the brokers remember producers for as long."""

    def alter(value: int) -> None:
        settings = {EXPIRATION: str(value)}
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", settings)])

    alter(milliseconds)
    try:
        yield
    finally:
        alter(DAY_MILLISECONDS)


@of_broker
def test_a_broker_that_forgets_tombstones_before_producers_cannot(set_up: Patient) -> None:
    with set_up.admin() as admin, remembering(admin, DAY_MILLISECONDS + 1):
        results = run(set_up.as_admin())
    assert "producer.id.expiration.ms 86400001 is more than delete.retention.ms 86400000" in shown(results)
    result = results["capabilities"]
    assert said(result, "compaction").startswith("cannot: ")
    head, *lines = lines_of(result).splitlines()
    assert head == f"{'capabilities':16}failed: 1 of {len(result.capabilities)} cannot"
    (finding,) = result.findings
    assert lines[lines.index(f"{'':34}{finding.remedy}") - 1].split()[:2] == ["compaction", "cannot:"]


@of_broker
def test_a_broker_without_authorizer_is_a_warning(set_up: Patient, broker: str) -> None:
    configuration = replace(set_up.as_admin(), connection=Cluster(broker, allow_plaintext=True))
    result = run(configuration, Role.READER)["authorization"]
    case = Case(configuration, Role.READER, time.time, usable=configuration.cluster.addresses())
    answer = capabilities(case, SECONDS)
    assert result.status == "ok"
    assert answers(answer)["authorizer"] == CANNOT
    assert [each.is_warning for each in answer.findings] == [True]


def test_what_brokers_lack_is_said_with_what_it_means(pin_messages: PinMessages) -> None:
    case = cast(Case, SimpleNamespace(proven=dict.fromkeys([need.name for need in NEEDS], False), away=[]))

    def line(need: Need, **known: object) -> str:
        asked = Question(cast(KafkaAdminClient, None), case)
        vars(asked).update(known)
        found = need.answer(asked)
        return "\n  ".join(
            each for each in (f"{found.name}  {found.answer}: {found.what}", found.remedy) if each
        )

    old = dict.fromkeys(range(100), (0, questions.COMMITTED_FETCH - 1))
    only_new = [{groups.ALLOWED_PROTOCOLS: "consumer"}]
    refusing = [need for need in NEEDS if isinstance(need.ask, questions.Trial)]
    of_versions = [need for need in NEEDS if need.ask in (questions.committed, questions.group_protocol)]
    pin_messages(
        {
            f"{need.name} of {need.roles[0]}, without the requests": partial(line, need, offered={})
            for need in NEEDS
            if need.requests or need.name == "authorizer"
        }
        | {
            f"{need.name} of {need.roles[0]}, tried": partial(line, need, offered=old, settings=only_new)
            for need in (*refusing, *of_versions)
        }
    )
