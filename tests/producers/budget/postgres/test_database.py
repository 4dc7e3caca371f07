"""Addresses of budget stores: no password, and other machines only with a verified certificate."""

from functools import partial

import pytest

from deniable.cluster.cluster import PlaintextError
from deniable.config.settings.budget_database import BudgetDatabase
from tests.support.messages import PinMessages

VERIFIED = "?sslmode=verify-full"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://deniable@127.0.0.1/budgets",
        "postgres://deniable@localhost:5433/budgets",
        "postgresql://deniable@[::1]:5432/budgets",
        "postgresql:///budgets?host=/run/postgresql",
        "postgresql://deniable@%2Frun%2Fpostgresql/budgets",
        f"postgresql://deniable@db.example/budgets{VERIFIED}",
        "postgresql://deniable@a.example:5432,b.example:5433/budgets?sslmode=verify-ca&target_session_attrs=any",
    ],
)
def test_address_is_taken(url):
    assert BudgetDatabase(url).when_away == "wait"


def test_messages(pin_messages: PinMessages) -> None:
    urls = {
        "another database": "mysql://127.0.0.1/budgets",
        "no host": "postgresql:///budgets",
        "no URL": "host=127.0.0.1",
        "a password": "postgresql://deniable:hunter2@127.0.0.1/budgets",
        "a password as a parameter": "postgresql://127.0.0.1/budgets?password=hunter2",
        "a service": "postgresql://127.0.0.1/budgets?service=x",
        "a numeric address": "postgresql://127.0.0.1/budgets?hostaddr=10.0.0.1",
        "another machine without a verified certificate": "postgresql://deniable@db.example/budgets",
    }
    local = "postgresql://127.0.0.1/budgets"
    pin_messages(
        {what: partial(BudgetDatabase, url) for what, url in urls.items()}
        | {"when_away is fail": lambda: BudgetDatabase(local, when_away="fail")}
    )


@pytest.mark.parametrize("mode", ["", "?sslmode=prefer", "?sslmode=require"])
@pytest.mark.parametrize("host", ["db.example", "127.0.0.1,db.example", "[2001:db8::1]:5432"])
def test_another_machine_needs_a_verified_certificate(host, mode):
    url = f"postgresql://deniable@{host}/budgets{mode}"
    with pytest.raises(PlaintextError):
        BudgetDatabase(url)
    assert BudgetDatabase(url, allow_plaintext=True)


def test_another_machine_by_parameter_is_one():
    with pytest.raises(PlaintextError):
        BudgetDatabase("postgresql://127.0.0.1/budgets?host=db.example")


def test_shown_address_has_no_user_or_parameters():
    url = f"postgresql://deniable@db.example:5433/budgets{VERIFIED}"
    assert BudgetDatabase(url).shown == "db.example:5433/budgets"
