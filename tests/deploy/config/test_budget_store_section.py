"""Section `producer.budget_store`: what it takes, and that no message shows what may be a password."""

from pathlib import Path

import pytest

from deploy.config.file import CollectionFileError, load
from deploy.config.producer import producer_config
from producers.budget.postgres.database import BudgetDatabase

COLLECTIONS = """\
collections:
  - {name: c, mechanism: k-rr, size: 10, epsilon: 3, window_seconds: 60, grace_seconds: 30, budget: none}
producer:
"""
URL = "postgresql://app@127.0.0.1/budgets"
CANARY = "hunter-7391"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def write(file: Path, producer: str) -> None:
    file.write_text(f"{COLLECTIONS}  {producer}\n")


def test_database_is_that_of_the_producer(file: Path) -> None:
    write(file, f"{{secret_file: s, budget_store: {{url: '{URL}', when_away: drop}}}}")
    assert producer_config(load(file, environment={})).budget_store == BudgetDatabase(URL, "drop")


def test_environment_sets_it(file: Path) -> None:
    write(file, "{pack_reports: 7}")
    environment = {
        "DENIABLE_PRODUCER__SECRET_FILE": "s",
        "DENIABLE_PRODUCER__BUDGET_STORE__URL": "postgresql://app@db.example/budgets",
        "DENIABLE_PRODUCER__BUDGET_STORE__ALLOW_PLAINTEXT": "true",
    }
    made = producer_config(load(file, environment=environment)).budget_store
    assert made == BudgetDatabase("postgresql://app@db.example/budgets", allow_plaintext=True)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            f"{{url: '{URL}', when_away: wit}}",
            "budget_store.when_away: must be one of wait, drop, got 'wit'; did",
        ),
        (
            f"{{url: 'postgresql://app:{CANARY}@127.0.0.1/b'}}",
            "budget_store.url must have no password: set PGPASS",
        ),
        (
            "{url: 'postgresql://app@db.example/b'}",
            "whose certificate is not verified: add sslmode=verify-full",
        ),
        (f"{{url: '{URL}', password: {CANARY}}}", "a password must not be in the file: set PGPASSWORD"),
        ("{}", "budget_store.url must be postgresql://USER@HOST:PORT/DATABASE"),
        (CANARY, "budget_store: must be a mapping of fields: url, when_away, allow_plaintext"),
        (f"{{5: {CANARY}}}", "names of fields must be text"),
        (f"{{url: [{CANARY}]}}", "budget_store.url: must be postgresql://USER@HOST:PORT/DATABASE"),
        (
            f"{{url: '{URL}', allow_plaintext: {CANARY}}}",
            "budget_store.allow_plaintext: must be true or false",
        ),
    ],
)
def test_wrong_section_is_refused_with_its_line(file: Path, section: str, message: str) -> None:
    write(file, f"secret_file: s\n  budget_store: {section}")
    with pytest.raises(CollectionFileError) as refused:
        load(file, environment={})
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{file}:5: ")
    assert CANARY not in str(refused.value)


def test_secret_must_be_shared(file: Path) -> None:
    write(file, f"budget_store: {{url: '{URL}'}}")
    with pytest.raises(CollectionFileError, match="budget_store needs secret_file: "):
        load(file, environment={})
