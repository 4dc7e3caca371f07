"""Budgets in a real PostgreSQL: charges as in SQLite, over all connections, and who may use the tables."""

import threading
from contextlib import suppress

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.postgres.connection import AwayError
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import Secret, SecretError
from tests.support.producers.charges import (
    ALLOWANCES,
    DAY,
    NOON,
    STEPS,
    PostgresCharges,
    allowance,
    check_against_model,
    clients_of,
    limit,
    window_of,
)
from tests.support.producers.postgres_server import postgres_server

pytestmark = pytest.mark.slow

SECRET = Secret(bytes(32))
TABLES = ("deniable_identity", "deniable_collections", "deniable_terms", "deniable_spending")


@pytest.fixture
def charges(database):
    charges = PostgresCharges(database, SECRET, allowance())
    yield charges
    charges.close()


@pytest.mark.nightly
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_charging_equals_the_model_of_the_folder(postgres_of_all, steps):
    charges = PostgresCharges(BudgetDatabase(postgres_of_all.new_database()), SECRET, ALLOWANCES[0])
    check_against_model(charges, steps)
    charges.close()


def test_charges_of_several_connections_never_exceed_the_limit(database, charges):
    """Without the lock of `raise_horizons`, some charges read rows that others are about to replace."""
    allowed, taken = limit(allowance(), 0.0), []

    def charge(number):
        mine = PostgresCharges(database, SECRET, allowance())
        for turn in range(30):
            windows = np.full(40, window_of(NOON) + 60 * ((number + turn) % 10))
            taken.append(mine.charge(list(range(40)), NOON, windows).accepted)
        mine.close()

    threads = [threading.Thread(target=charge, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert np.sum(taken, 0).tolist() == [min(allowed, 10)] * 40
    spent = charges.spending.spent(clients_of([7])[0], NOON)["answers"]
    assert spent.lifetime_reports == min(allowed, 10)


def test_rolled_back_charge_leaves_nothing(charges):
    with suppress(KeyError), charges.store.transaction():
        charges.spending.charge("answers", clients_of([1]), np.array([window_of(NOON)]), NOON)
        raise KeyError
    assert charges.spending.spent(clients_of([1])[0], NOON)["answers"].lifetime_reports == 0
    assert charges.spend(1, 2) == 2


def test_spending_survives_the_connection_and_changed_parameters(charges):
    assert charges.spend(1, 2) == 2
    charges.open(allowance(budget=(2.0, DAY)))
    assert charges.spending.spent(clients_of([1])[0], NOON)["answers"].reports == 2
    assert charges.spend(1, 5) == 0


def test_rows_of_many_sizes_are_read_as_written(charges):
    numbers = [number for number in range(50) for _ in range(number % 4)]
    windows = [window_of(NOON) + 60 * place for number in range(50) for place in range(number % 4)]
    assert charges.charge(numbers, NOON, windows).accepted.all()
    for number in range(50):
        spent = charges.spending.spent(clients_of([number])[0], NOON)["answers"]
        assert spent.reports == number % 4


def test_another_secret_is_refused(database, charges):
    with pytest.raises(SecretError, match=database.shown):
        PostgresBudgets(database, Secret(bytes(31) + b"x"))


def test_producers_that_start_together_create_the_tables_once(database):
    failures = []

    def start():
        try:
            PostgresCharges(database, SECRET, allowance()).close()
        except StoreError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_other_schema_version_is_refused(postgres_of_all, database, charges):
    postgres_of_all.execute("UPDATE deniable_identity SET version = 2", database.url)
    with pytest.raises(StoreError, match="version of its tables must be 1, got 2"):
        PostgresBudgets(database, SECRET)


def test_damaged_rows_are_refused(postgres_of_all, database, charges):
    charges.spend(1, 1)
    postgres_of_all.execute("UPDATE deniable_spending SET spent = 'x'", database.url)
    with pytest.raises(StoreError, match="changed by another program"):
        charges.spend(1, 1)


def test_closed_port_is_away():
    with pytest.raises(AwayError, match=r"budget store 127.0.0.1:9/budgets: .*refused"):
        PostgresBudgets(BudgetDatabase("postgresql://deniable@127.0.0.1:9/budgets"), SECRET)


def test_user_without_rights_gets_the_remedy(postgres_of_all, database):
    """Its tables made by an administrator, a user needs to select, insert and update."""
    execute = postgres_of_all.execute
    user = database.url.rpartition("/")[2].replace("budgets", "user")
    execute(f"CREATE USER {user}")
    theirs = BudgetDatabase(database.url.replace("deniable@", f"{user}@"))
    with pytest.raises(StoreError, match=f"user {user} may not create its tables: .*schema.sql"):
        PostgresBudgets(theirs, SECRET)
    PostgresBudgets(database, SECRET).close()
    with pytest.raises(StoreError, match=f"grant SELECT, INSERT, UPDATE on deniable_identity.* to {user}"):
        PostgresBudgets(theirs, SECRET)
    execute(f"GRANT SELECT, INSERT, UPDATE ON {', '.join(TABLES)} TO {user}", database.url)
    charges = PostgresCharges(theirs, SECRET, allowance())
    assert charges.spend(1, 2) == 2
    charges.close()


def test_server_that_may_forget_is_refused():
    with postgres_server() as server:
        server.stop()
        server.start("fsync=off")
        with pytest.raises(StoreError, match="fsync is off"):
            PostgresBudgets(BudgetDatabase(server.url()), SECRET)


def test_transaction_is_durable_and_bounded(charges):
    with charges.store.transaction():
        shown = [
            charges.store._connection.rows(f"SHOW {name}")
            for name in ("synchronous_commit", "transaction_isolation", "statement_timeout")
        ]
    assert shown == [[("on",)], [("read committed",)], [("10s",)]]


def test_suspended_producer_holds_up_others_for_seconds_only(database, charges):
    """A process that stops within a transaction has the collection's lock."""
    other = PostgresCharges(database, SECRET, allowance())
    suspended = charges.store.transaction()
    suspended.__enter__()
    charges.spending.charge("answers", clients_of([1]), np.array([window_of(NOON)]), NOON)
    assert other.spend(1, 2) == 2  # waits until the server ends the other session
    with pytest.raises(AwayError):
        suspended.__exit__(None, None, None)
    assert other.spending.spent(clients_of([1])[0], NOON)["answers"].reports == 2
    other.close()


def test_new_parameters_begin_between_two_charges(database, charges):
    """Else their horizon could be earlier than windows that a charge has forgotten meanwhile."""
    begun = []
    with charges.store.transaction():
        charges.spending.charge("answers", clients_of([1]), np.array([window_of(NOON)]), NOON)
        starting = threading.Thread(
            target=lambda: begun.append(PostgresCharges(database, SECRET, allowance(budget=(2.0, DAY))))
        )
        starting.start()
        starting.join(0.3)
        assert begun == []
    starting.join()
    numbers = begun[0].store.numbers()
    assert len(set(begun[0].store.raise_horizons(numbers["answers"], 0).values())) == 1
    begun[0].close()


def test_message_shows_no_row(database, charges):
    connection = charges.store._connection
    with pytest.raises(AwayError) as failed:
        connection.rows("INSERT INTO deniable_identity VALUES (0, 1, 'canary'::bytea)")
    assert "duplicate key" in str(failed.value)
    assert "(0)" not in str(failed.value)
    with pytest.raises(psycopg.errors.UniqueViolation, match=r"\(0\)"):
        charges.store._connection._connection.execute(
            "INSERT INTO deniable_identity VALUES (0, 1, 'canary'::bytea)"
        )
