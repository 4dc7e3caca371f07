"""Clients charged in a real PostgreSQL before their reports are stored; the database killed, paused, gone."""

import os
import time
from itertools import chain

import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.postgres import budgets
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.postgres.connection import AwayError
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import SecretError
from deniable.protocol.wire import decode
from tests.support.brokers.log_lines import messages
from tests.support.processes import wait_until
from tests.support.producers.postgres_server import postgres_server

pytestmark = pytest.mark.slow

LIMIT = 12
CARRIER = Allowance(
    Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True, window_seconds=60),
    Budget(epsilon=float(LIMIT), delta=1e-6, period_seconds=10 * 366 * 86_400),
    reports_per_window=100,
)


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_bytes(bytes(range(32)))
    return path


@pytest.fixture
def pod(make, tmp_path, secret_file):
    """Build producers that share a secret and a database, and no folder."""

    def make_one(database, number=0, **options):
        folder = tmp_path / f"pod-{number}"
        return make(CARRIER, data_dir=folder, secret_file=secret_file, budget_store=database, **options)

    return make_one


@pytest.fixture
def server():
    with postgres_server() as server:
        yield server


def report(producer, reports, client="anna"):
    return producer.report("carrier", ["AA"] * reports, [client] * reports)


def sent(kafka):
    return sum(decode(each["value"]).reports for each in kafka.sent)


def test_limit_of_a_client_holds_over_all_pods(pod, database, kafka):
    pods = [pod(database, number) for number in range(3)]
    receipts = [report(pods[turn % 3], 1) for turn in range(LIMIT + 4)]
    assert receipts == [Receipt(stored=1)] * LIMIT + [Receipt(refused=1)] * 4
    for each in pods:
        each.flush()
    assert sent(kafka) == LIMIT
    refused = [each.counters().refused.get(("carrier", "over_budget"), 0) for each in pods]
    assert (sum(refused), refused.count(0)) == (4, 0)


def test_database_has_no_client_value_or_report(pod, database, postgres_of_all):
    producer = pod(database)
    producer.report("carrier", ["canary-7391"] * 3, [f"client-5519{number}" for number in range(3)])
    producer.flush()
    url = database.url
    named = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'"
    named += " AND schemaname <> 'information_schema'"
    tables = [name for (name,) in postgres_of_all.execute(named, url)]
    rows = [postgres_of_all.execute(f"TABLE {name}", url) for name in tables]
    stored = b" ".join(
        bytes(cell) if isinstance(cell, bytes) else str(cell).encode() for row in chain(*rows) for cell in row
    )
    assert max(map(len, rows)) >= 3
    for canary in ("canary-7391", "client-5519"):
        assert canary.encode() not in stored


def test_reports_without_clients_need_no_database(pod, kafka):
    closed = BudgetDatabase("postgresql://deniable@127.0.0.1:9/budgets")
    producer = pod(closed, block_milliseconds=200, pack_seconds=0.1)
    producer.report("carrier", ["AA"] * 5, None)
    assert report(producer, 2) == Receipt(pending=2)
    assert wait_until(lambda: producer.counters().stored["carrier"] == 5)
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1:9"):
        producer.flush(0.5)
    with pytest.raises(DeliveryError, match="2 reports"):
        producer.close(0.1)
    assert sent(kafka) == 5


def test_reports_wait_for_the_database(pod, server, kafka, caplog):
    producer = pod(BudgetDatabase(server.url()), block_milliseconds=300)
    report(producer, 1)
    assert wait_until(lambda: producer.counters().stored["carrier"] == 1)
    server.kill()
    assert report(producer, 3) == Receipt(pending=3)
    assert wait_until(lambda: producer.counters().is_budget_store_away)
    (reason,) = producer.reasons_not_ready()
    place = f"127.0.0.1:{server.port}/postgres"
    assert place in reason
    assert len([each for each in messages(caplog) if place in each]) == 1
    server.start()
    producer.flush()
    assert sent(kafka) == 4
    assert producer.reasons_not_ready() == []
    report(producer, LIMIT)
    assert wait_until(lambda: producer.counters().stored["carrier"] == LIMIT)
    assert producer.counters().refused["carrier", "over_budget"] == 4


def test_reports_are_dropped_if_configured(pod, server, kafka):
    producer = pod(BudgetDatabase(server.url(), when_away="drop"))
    assert report(producer, 1) == Receipt(stored=1)
    server.kill()
    dropped = report(producer, 3)
    assert dropped == Receipt(dropped=3)
    assert f"127.0.0.1:{server.port}/postgres" in dropped.why_dropped
    server.start()
    assert wait_until(lambda: report(producer, 1) == Receipt(stored=1))
    with pytest.raises(DeliveryError, match="reports"):
        producer.flush()
    assert sent(kafka) == 2


def test_restarted_server_costs_no_report(pod, server, kafka):
    """The connection is found dead at the next charge, and a new one is made at once."""
    producer = pod(BudgetDatabase(server.url(), when_away="drop"))
    report(producer, 1)
    server.kill()
    server.start()
    assert report(producer, 1) == Receipt(stored=1)


@pytest.mark.all
def test_hanging_database_holds_up_neither_close_nor_others(pod, server, kafka):
    producer = pod(BudgetDatabase(server.url()), block_milliseconds=200)
    report(producer, 1)
    assert wait_until(lambda: producer.counters().stored["carrier"] == 1)
    server.pause()
    began = time.monotonic()
    assert report(producer, 1) == Receipt(pending=1)
    producer.report("carrier", ["AA"], None)
    assert wait_until(lambda: producer.counters().stored["carrier"] == 2)
    with pytest.raises(DeliveryError):
        producer.close(0.2)
    assert time.monotonic() - began < 40
    server.go_on()


def test_unknown_commit_is_charged_again(pod, database, kafka, monkeypatch):
    """Over-counted, never under-counted."""
    producer = pod(database)
    report(producer, 1)
    commit, failures = budgets.DatabaseConnection.run, [1]

    def run(connection, statements):
        commit(connection, statements)
        if statements == "COMMIT" and failures:
            failures.pop()
            raise AwayError("the connection was lost")

    monkeypatch.setattr(budgets.DatabaseConnection, "run", run)
    assert report(producer, 2) == Receipt(stored=2)
    assert report(producer, LIMIT) == Receipt(stored=LIMIT - 5, refused=5)
    producer.flush()
    assert sent(kafka) == LIMIT - 2


def test_nothing_is_stored_before_it_is_charged(pod, database, kafka, monkeypatch):
    producer = pod(database, block_milliseconds=100)

    def refuse(*_):
        raise AwayError("no")

    with monkeypatch.context() as broken:
        broken.setattr(PostgresBudgets, "save", refuse)
        assert report(producer, 2) == Receipt(pending=2)
        with pytest.raises(DeliveryError):
            producer.flush(0.5)
        assert sent(kafka) == 0
    producer.flush()
    assert sent(kafka) == 2


def test_many_small_calls_are_charged_together(pod, database, kafka, monkeypatch):
    """A transaction takes what came while the last one ran."""
    charges, save = [], PostgresBudgets.save
    monkeypatch.setattr(PostgresBudgets, "save", lambda *given: charges.append(len(given[2])) or save(*given))
    producer = pod(database, block_milliseconds=0)
    for number in range(2000):
        producer.report("carrier", ["AA"], [f"client-{number}"])
    producer.flush()
    assert sent(kafka) == sum(charges) == 2000
    assert len(charges) < 1000


def test_forked_child_connects_anew(pod, database, kafka):
    """The parent's connection is closed at the fork; both go on, and share the budget."""
    producer = pod(database)
    report(producer, 1)
    if (child := os.fork()) == 0:
        os._exit(0 if report(producer, 3) == Receipt(stored=3) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert report(producer, LIMIT) == Receipt(stored=LIMIT - 4, refused=4)
    producer.flush()


def test_another_secret_is_refused_at_the_start(pod, make, database, tmp_path):
    pod(database)
    other = tmp_path / "other"
    other.touch(0o600)
    other.write_bytes(bytes(32))
    with pytest.raises(SecretError, match=database.shown):
        make(CARRIER, data_dir=tmp_path / "new", secret_file=other, budget_store=database)


def test_folder_that_charged_clients_is_not_taken_over(make, pod, database, tmp_path, secret_file):
    """They would begin with new budgets."""
    alone = make(CARRIER, data_dir=tmp_path / "pod-0", secret_file=secret_file)
    report(alone, 1)
    alone.close()
    with pytest.raises(StoreError, match="budget_store"):
        pod(database)


def test_secret_file_is_required(make, database):
    with pytest.raises(ValueError, match="secret_file"):
        make(CARRIER, budget_store=database)


def test_largest_spending_is_shown(pod, database):
    producer = pod(database)
    report(producer, LIMIT // 2)
    share = CARRIER.epsilon(LIMIT // 2) / LIMIT
    assert wait_until(lambda: producer.counters().budget_used == {"carrier": share})


@pytest.mark.usefixtures("one_dies")
def test_dead_charging_thread_is_reported(pod, database, monkeypatch, kafka):
    producer = pod(database)

    def die(*_):
        raise KeyError("canary")

    monkeypatch.setattr(PostgresBudgets, "load", die)
    with pytest.raises(DeliveryError, match="KeyError"):
        report(producer, 1)
    with pytest.raises(DeliveryError, match="KeyError"):
        producer.close()
    assert sent(kafka) == 0
