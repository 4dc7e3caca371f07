"""Section `producer.budget_store`: what it takes, and that no message shows what may be a password."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.file import CollectionFileError, load
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.opening.from_file import producer_config
from tests.support.messages import PinMessages

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


def load_written(file: Path, producer: str) -> None:
    write(file, producer)
    load(file, environment={})


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


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    """What may be a password is never shown."""
    sections = {
        "when_away is misspelt": f"{{url: '{URL}', when_away: wit}}",
        "the URL has a password": f"{{url: 'postgresql://app:{CANARY}@127.0.0.1/b'}}",
        "another machine without TLS": "{url: 'postgresql://app@db.example/b'}",
        "a field password": f"{{url: '{URL}', password: {CANARY}}}",
        "no URL": "{}",
        "the section is text": CANARY,
        "a field's name is a number": f"{{5: {CANARY}}}",
        "the URL is a list": f"{{url: [{CANARY}]}}",
        "allow_plaintext is text": f"{{url: '{URL}', allow_plaintext: {CANARY}}}",
    }
    producers = {what: f"secret_file: s\n  budget_store: {section}" for what, section in sections.items()} | {
        "no shared secret": f"budget_store: {{url: '{URL}'}}"
    }
    for producer in producers.values():
        with pytest.raises(CollectionFileError) as refused:
            load_written(file, producer)
        assert CANARY not in str(refused.value)
    pin_messages({what: partial(load_written, file, producer) for what, producer in producers.items()})
