"""What `deniable doctor` says while some brokers are away or slow, and that clients are silent."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import errors as of_aiokafka
from click.testing import CliRunner
from kafka import errors as of_kafka_python

from deniable.cluster.cluster import Cluster
from deniable.cluster.permissions.roles import Role
from deniable.config.file import Configuration, load
from deniable.deploy.cluster.doctor import command, examination
from deniable.deploy.cluster.doctor.brokers import outage_finding
from deniable.deploy.cluster.doctor.capabilities import transactions
from deniable.deploy.cluster.doctor.case import Case, StepAnswer
from deniable.deploy.cluster.doctor.connection import advertised, connection
from deniable.deploy.cluster.doctor.examination import Result, Step, examine
from tests.support.deploy.doctors import FILE
from tests.support.messages import PinMessages

AWAY = ["127.0.0.1:2", "127.0.0.1:3"]
OUTAGES = (
    of_kafka_python.KafkaConnectionError("127.0.0.1:2"),
    of_kafka_python.KafkaTimeoutError(),
    of_aiokafka.NodeNotReadyError(),
    of_aiokafka.KafkaTimeoutError(),
)
OTHERS = (
    of_kafka_python.TopicAuthorizationFailedError(),
    of_kafka_python.UnknownTopicOrPartitionError(),
    of_aiokafka.IllegalStateError(),
    ValueError(),
    TimeoutError(),
)


@pytest.fixture
def loaded(tmp_path: Path) -> Configuration:
    path = tmp_path / "deniable.yaml"
    path.write_text(FILE.format(prefix=""), encoding="utf-8")
    return load(path, environment={})


def test_errors_of_both_clients_in_an_outage_are_told_from_others(pin_messages: PinMessages) -> None:
    def said(error: Exception, away: list[str]) -> str:
        finding = outage_finding(error, away)
        assert finding is not None
        return f"{finding.what}\n  {finding.remedy}"

    assert [outage_finding(each, []) for each in OTHERS] == [None] * len(OTHERS)
    assert all("away: " in said(each, AWAY) for each in (*OUTAGES, TimeoutError()))
    pin_messages(
        {
            "no broker is known to be away": lambda: said(OUTAGES[0], []),
            "time went by": lambda: said(OUTAGES[3], []),
            "one is away": lambda: said(OUTAGES[0], AWAY[:1]),
            "two are away": lambda: said(TimeoutError(), AWAY),
        }
    )


@pytest.mark.slow
def test_a_step_that_fails_while_brokers_are_away_names_them(
    loaded: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the file that take no connection, and those that others advertise, each once."""

    def fail(_case: Case, _seconds: float) -> StepAnswer:
        raise OUTAGES[0]

    def hang(_case: Case, _seconds: float) -> StepAnswer:
        time.sleep(5)
        return StepAnswer([])

    steps = (
        Step("connection", connection, 2.0, ""),
        Step("brokers", advertised, 2.0, ""),
        Step("fails", fail, 2.0, ""),
        Step("hangs", hang, 0.2, ""),
    )
    monkeypatch.setattr(examination, "STEPS", steps)
    loaded = replace(loaded, connection=Cluster("127.0.0.1:9"))
    case = Case(loaded, Role.AGGREGATOR, lambda: 0.0, advertised=[("127.0.0.1", 7), ("127.0.0.1", 9)])
    *_, failed, hung = examine(case)
    away = "while brokers are away: 127.0.0.1:9, 127.0.0.1:7"
    assert [each.what for each in failed.findings] == [f"a broker that this needs does not answer {away}"]
    assert [each.what for each in hung.findings] == [f"no answer in time {away}"]


def test_a_first_transaction_has_time_and_is_worth_another_run(
    loaded: Configuration, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    asking = [each for each in examination.STEPS if each.name in ("authorization", "transactions")]
    assert [each.seconds >= 5 for each in asking] == [True, True]

    async def never(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(transactions, "_by_leader", lambda _: {1: 0})
    monkeypatch.setattr(transactions, "_try", never)
    case = Case(loaded, Role.AGGREGATOR, lambda: 0.0)
    (finding,) = transactions.transactions(case, 5.0).findings
    case.away = AWAY
    with pytest.raises(TimeoutError):
        transactions.transactions(case, 5.0)
    pin_messages({"nothing came": lambda: f"{finding.what}\n  {finding.remedy}"})


def test_the_clients_log_nothing_beside_the_steps(
    loaded: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = []

    def examined(case: Case) -> Iterator[Result]:
        assert not case.away
        yield Result("clients", "ok", (), f"silent: {silent}", 0.0)

    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(command, "silence_clients", lambda: silent.append(True))
    monkeypatch.setattr(command, "examine", examined)
    monkeypatch.setattr(command, "handle", lambda *_: None)
    monkeypatch.setattr(os, "_exit", leave)
    ended = CliRunner().invoke(command.doctor, ["--config", str(loaded.path)])
    assert ended.output == "clients         ok: silent: [True]\n"
