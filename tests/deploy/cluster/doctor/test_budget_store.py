"""`deniable doctor` tries a real database with budgets, and changes nothing in it."""

import time
from pathlib import Path

import pytest

from deniable.cluster.permissions.roles import Role
from deniable.config.file import load
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.deploy.cluster.doctor.case import Case, StepAnswer
from deniable.deploy.cluster.doctor.examination import AWAY_REMEDY, budget_store
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.protocol.secrets.secret import Secret, load_secret
from tests.support.messages import PinMessages
from tests.support.producers.postgres_server import PostgresServer

COLLECTIONS = """\
collections:
  - {name: c, mechanism: k-rr, size: 10, epsilon: 3, window_seconds: 60, grace_seconds: 30, budget: none}
"""


def examined(folder: Path, url: str, role: Role = Role.PRODUCER) -> StepAnswer:
    path = folder / "deniable.yaml"
    path.write_text(f"{COLLECTIONS}producer: {{secret_file: secret, budget_store: {{url: '{url}'}}}}\n")
    return budget_store(Case(load(path, environment={}), role, time.time), 2.5)


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    return load_secret(tmp_path / "secret")


@pytest.mark.slow
@pytest.mark.usefixtures("secret")
def test_new_database_is_left_as_it_is(
    tmp_path: Path, database: BudgetDatabase, postgres_of_all: PostgresServer
) -> None:
    answer = examined(tmp_path, database.url)
    assert answer == StepAnswer([], "it answers; the first producer will create its tables")
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres_of_all.execute(tables, database.url) == [(0,)]


@pytest.mark.slow
def test_used_database_belongs_to_one_secret(
    tmp_path: Path, database: BudgetDatabase, secret: Secret
) -> None:
    PostgresBudgets(database, secret).close()
    used = StepAnswer([], "it answers, and its tables belong to this secret")
    assert examined(tmp_path, database.url) == used
    (tmp_path / "secret").write_bytes(bytes(32))
    (finding,) = examined(tmp_path, database.url).findings
    assert database.url.rpartition("/")[2] in finding.what


@pytest.mark.slow
def test_missing_permissions_are_named(
    tmp_path: Path, database: BudgetDatabase, secret: Secret, postgres_of_all: PostgresServer
) -> None:
    user = database.url.rpartition("/")[2].replace("budgets", "user")
    postgres_of_all.execute(f"CREATE USER {user}")
    theirs = database.url.replace("deniable@", f"{user}@")
    (finding,) = examined(tmp_path, theirs).findings
    assert f"user {user} " in finding.what
    PostgresBudgets(database, secret).close()
    postgres_of_all.execute(f"GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA public TO {user}", database.url)
    (finding,) = examined(tmp_path, theirs).findings
    assert "grant SELECT, INSERT, UPDATE on deniable_identity" in finding.what
    postgres_of_all.execute(f"GRANT INSERT ON ALL TABLES IN SCHEMA public TO {user}", database.url)
    assert examined(tmp_path, theirs).findings == []


@pytest.mark.usefixtures("secret")
def test_closed_port_and_missing_secret_are_found(tmp_path: Path) -> None:
    closed = "postgresql://deniable@127.0.0.1:9/budgets"
    (finding,) = examined(tmp_path, closed).findings
    assert finding.what.startswith("budget store 127.0.0.1:9/budgets: ")
    assert finding.remedy == AWAY_REMEDY
    (tmp_path / "secret").unlink()
    (finding,) = examined(tmp_path, closed).findings
    assert str(tmp_path / "secret") in finding.what


def test_messages_to_others_than_producers_with_a_database(tmp_path: Path, pin_messages: PinMessages) -> None:
    path = tmp_path / "folder.yaml"
    path.write_text(COLLECTIONS)
    folder = Case(load(path, environment={}), Role.PRODUCER, time.time)
    url = "postgresql://deniable@127.0.0.1:9/budgets"
    pin_messages(
        {
            "another role than producer": lambda: examined(tmp_path, url, Role.AGGREGATOR),
            "budgets are in a folder": lambda: budget_store(folder, 2.5),
        }
    )
