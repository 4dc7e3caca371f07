"""What brokers state, leave out, or hide from us: no answer is ok that rests on something unseen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourceType
from kafka.errors import InvalidReplicationFactorError

from deniable.cluster.connection import groups
from deniable.cluster.permissions.roles import Permission, Role
from deniable.cluster.topics.plan import DAY_MILLISECONDS, LEFT_TO_CLUSTER, plan
from deniable.config.file import Configuration
from deniable.deploy.cluster.doctor.capabilities.needs import NEEDS
from deniable.deploy.cluster.doctor.capabilities.questions import (
    CANNOT,
    CLEANER,
    CLEANUP,
    EXPIRATION,
    OK,
    TOMBSTONES,
    UNKNOWN,
    Question,
    Reply,
    committed,
    compaction,
    group_protocol,
    topic_settings,
)
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.topics.creation import POLICY
from deniable.protocol.topic_names import Topics
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.deploy.doctors import Patient, run
from tests.support.producers.topics import change

TOPICS = Topics("d-", 2)
DAY = str(DAY_MILLISECONDS)
LONGER = str(DAY_MILLISECONDS + 1)
GOOD = {CLEANER: "true", EXPIRATION: DAY}
PLANNED = next(each.settings for each in plan(TOPICS) if each.name == TOPICS.state)
UNREADABLE = "so topic d-state might become unreadable"
TOO_LONG = CANNOT, f"{EXPIRATION} {LONGER} is more than {TOMBSTONES} {DAY}, {UNREADABLE}"
NO_TOMBSTONES = CANNOT, "topic d-state has no delete.retention.ms, so it might become unreadable"
NOT_CLEANED = CANNOT, f"{CLEANER} is false, so topic d-state would grow without end"
Settings = Mapping[str, str | None]


class Stating:
    """States the settings of `state`; None: it is absent; without any: they are hidden from us.

    Refuses new topics with an error: all of them, or those with settings that are the cluster's to choose.
    """

    def __init__(self, state: Settings | None, error: int = 0, *, is_choosy: bool = False) -> None:
        self._state, self._error, self._is_choosy = state, error, is_choosy

    def describe_topics(self, names: list[str]) -> list[dict[str, object]]:
        is_there = {TOPICS.state: self._state is not None}
        return [
            {"name": each, "error_code": 0 if is_there.get(each) else 3, "authorized_operations": []}
            for each in names
        ]

    def describe_configs(self, resources: list[object], config_filter: str) -> dict[str, object]:
        stated = {key: {"value": value} for key, value in (self._state or {}).items()}
        return {"topic": {TOPICS.state: stated}}

    def create_topics(
        self, topics: Mapping[str, Mapping[str, Settings]], *, validate_only: bool, raise_errors: bool
    ) -> dict[str, list[dict[str, object]]]:
        assert validate_only

        def error(name: str) -> int:
            chosen = set(LEFT_TO_CLUSTER) & topics[name]["configs"].keys()
            return self._error if chosen or not self._is_choosy else 0

        return {
            "topics": [{"name": each, "error_code": error(each), "error_message": "no"} for each in topics]
        }


def question(brokers: Sequence[Settings], state: Settings | None = None, **refusal: Any) -> Question:
    configuration = SimpleNamespace(topics=TOPICS)
    case = SimpleNamespace(configuration=configuration, role=Role.AGGREGATOR, proven={}, away=[])
    asked = Question(cast(KafkaAdminClient, Stating(state, **refusal)), cast(Case, case))
    vars(asked).update(settings=brokers, offered=groups.REQUESTS)
    return asked


def without(key: str) -> Settings:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.mark.parametrize(
    ("brokers", "reply"),
    [
        ([GOOD], (OK, f"the cleaner runs, and {TOMBSTONES} {DAY} is at least {EXPIRATION} {DAY}")),
        (
            [GOOD, {**GOOD, EXPIRATION: LONGER}],
            TOO_LONG,
        ),
        ([{EXPIRATION: LONGER}, GOOD], TOO_LONG),
        ([GOOD, {**GOOD, CLEANER: "false"}], NOT_CLEANED),
        ([{CLEANER: "false"}], NOT_CLEANED),
        ([{"other": "1"}], (UNKNOWN, f"the brokers do not state {CLEANER} and {EXPIRATION}")),
        ([GOOD, without(CLEANER)], (UNKNOWN, f"the brokers do not state {CLEANER}")),
        ([{**GOOD, CLEANER: None}], (UNKNOWN, f"the brokers do not state {CLEANER}")),
        ([without(EXPIRATION), GOOD], (UNKNOWN, f"the brokers do not state {EXPIRATION}")),
        ([{**GOOD, EXPIRATION: None}], (UNKNOWN, f"the brokers do not state {EXPIRATION}")),
    ],
)
def test_compaction_by_what_brokers_state(brokers: list[Settings], reply: Reply) -> None:
    assert compaction(question(brokers, PLANNED)) == reply


@pytest.mark.parametrize(
    ("state", "reply"),
    [
        (None, (OK, f"the cleaner runs, and the planned {TOMBSTONES} {DAY} is at least {EXPIRATION} {DAY}")),
        (
            {**PLANNED, CLEANUP: "delete"},
            (CANNOT, f"{CLEANUP} of topic d-state is delete, so ledgers would lose rows"),
        ),
        (
            {**PLANNED, CLEANUP: "compact,delete"},
            (CANNOT, f"{CLEANUP} of topic d-state is compact,delete, so ledgers would lose rows"),
        ),
        ({CLEANUP: "compact"}, NO_TOMBSTONES),
        ({CLEANUP: "compact", TOMBSTONES: None}, NO_TOMBSTONES),
        (
            {**PLANNED, TOMBSTONES: "1"},
            (CANNOT, f"{EXPIRATION} {DAY} is more than {TOMBSTONES} 1, {UNREADABLE}"),
        ),
    ],
)
def test_compaction_by_the_settings_of_state(state: Settings | None, reply: Reply) -> None:
    assert compaction(question([GOOD], state)) == reply


def test_compaction_is_unknown_where_the_settings_of_state_are_hidden() -> None:
    (need,) = [each for each in NEEDS if each.name == "compaction"]
    answer = need.answer(question([GOOD], {}))
    assert (answer.answer, answer.what) == (UNKNOWN, "not permitted to ask (DescribeConfigs on the topics)")


@pytest.mark.parametrize(
    ("brokers", "word"),
    [
        (["classic"], OK),
        ([None], OK),
        (["consumer,classic"], OK),
        (["classical"], CANNOT),
        (["classic", "consumer"], CANNOT),
    ],
)
def test_group_protocol_by_what_brokers_state(brokers: list[str | None], word: str) -> None:
    asked = question([{groups.ALLOWED_PROTOCOLS: each} for each in brokers])
    assert group_protocol(asked)[0] == word
    assert group_protocol(question([{}]))[0] == OK


@pytest.mark.parametrize(("version", "word"), [(3, CANNOT), (4, OK), (17, OK)])
def test_readers_need_the_fetch_that_leaves_aborted_records_out(version: int, word: str) -> None:
    asked = question([])
    vars(asked)["offered"] = {1: (0, version)}
    assert committed(asked)[0] == word


@pytest.mark.parametrize(
    ("refusal", "reply"),
    [
        ({}, (OK, "7 absent topics would be created with them")),
        ({"error": POLICY[0]}, (CANNOT, "topic d-reports is refused: no")),
        ({"error": POLICY[1]}, (CANNOT, "topic d-reports is refused: no")),
        ({"error": InvalidReplicationFactorError.errno}, (UNKNOWN, "topic d-reports is refused: no")),
        (
            {"error": POLICY[0], "is_choosy": True},
            (OK, "7 absent topics would be created with them, but for those that the cluster chooses"),
        ),
    ],
)
def test_settings_of_absent_topics_by_what_brokers_refuse(refusal: dict[str, Any], reply: Reply) -> None:
    assert topic_settings(question([], **refusal)) == reply


def test_only_what_no_count_depends_on_is_a_warning() -> None:
    assert {each.name for each in NEEDS if not each.is_vital} == {"quotas", "authorizer"}


def said(configuration: Configuration, name: str, role: Role = Role.AGGREGATOR) -> str:
    capabilities = run(configuration, role)["capabilities"].capabilities
    return next(f"{each.answer}: {each.what}" for each in capabilities if each.name == name)


@pytest.mark.broker
def test_topic_settings_rest_on_topics_that_were_seen(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str
) -> None:
    patient = Patient(secured_broker, tmp_path, topic_prefix)
    patient.create_topics()
    admin, worker = patient.as_admin(), patient.user("worker", Role.AGGREGATOR)
    topics = admin.topics
    assert said(worker, "topic settings") == "ok: right in 6 topics; an aggregator may not see 3 others"
    blind = patient.user("blind", Role.AGGREGATOR, but=[f"DescribeConfigs topic {topics.counts}"])
    hidden = f"unknown: not permitted to ask (DescribeConfigs on {topics.counts})"
    assert said(blind, "topic settings") == hidden
    with patient.admin() as client:
        client.delete_topics([topics.estimates])
        assert (
            said(admin, "topic settings")
            == "ok: right in 8 topics; 1 absent topic would be created with them"
        )
        change(client, topics.state, {CLEANUP: "delete"})
    wrong = f"cannot: topic {topics.state}: {CLEANUP} must be compact, got delete"
    assert said(admin, "topic settings").startswith(wrong)
    assert said(worker, "topic settings").startswith(wrong)  # it may not ask for a creation
    assert said(admin, "compaction").startswith(f"cannot: {CLEANUP} of topic {topics.state} is delete")


@pytest.mark.broker
def test_an_authorizer_is_asked_for_the_permissions_of_one_topic(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str
) -> None:
    patient = Patient(secured_broker, tmp_path, topic_prefix)
    topics = patient.as_admin().topics
    none = f"ok: it lists 0 permissions for topic {topics.reports}"
    assert said(patient.as_admin(), "authorizer") == none
    worker, worker_name = patient.user("worker", Role.AGGREGATOR), f"{topic_prefix}worker"
    assert said(worker, "authorizer") == "ok: it does not show us permissions"
    all_of_worker = f"ok: it lists 3 permissions for topic {topics.reports}"
    assert said(patient.as_admin(), "authorizer") == all_of_worker
    every_topic = Permission(ResourceType.TOPIC, topic_prefix, ACLOperation.READ, is_prefix=True)
    patient.allow(worker_name, [every_topic])
    assert said(patient.as_admin(), "authorizer") == all_of_worker.replace("3", "4", 1)


@pytest.mark.broker
def test_a_relay_relies_on_append_times_of_uploads(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str
) -> None:
    patient = Patient(secured_broker, tmp_path, topic_prefix)
    topics = patient.as_admin().topics
    absent = f"unknown: topic {topics.uploads} is absent"
    assert said(patient.as_admin(), "append times", Role.RELAY) == absent
    patient.create_topics()
    relay = patient.user("relay", Role.RELAY)
    setting = f"message.timestamp.type of topic {topics.uploads} is"
    assert said(relay, "append times", Role.RELAY) == f"ok: {setting} LogAppendTime"
    blind = patient.user("blind", Role.RELAY, but=[f"DescribeConfigs topic {topics.uploads}"])
    hidden = "unknown: not permitted to ask (DescribeConfigs on the topics)"
    assert said(blind, "append times", Role.RELAY) == hidden
    with patient.admin() as client:
        change(client, topics.uploads, {"message.timestamp.type": "CreateTime"})
    assert said(relay, "append times", Role.RELAY).startswith(f"cannot: {setting} CreateTime")
