"""Addresses of budget stores: no password, and other machines only with a verified certificate."""

import pytest

from producers.budget.postgres.database import BudgetDatabase
from producers.transport.cluster import PlaintextError

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


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://127.0.0.1/budgets", "must be postgresql://"),
        ("postgresql:///budgets", "must be postgresql://"),
        ("host=127.0.0.1", "must be postgresql://"),
        ("postgresql://deniable:hunter2@127.0.0.1/budgets", "must have no password: set PGPASSWORD"),
        ("postgresql://127.0.0.1/budgets?password=hunter2", "must have no password"),
        ("postgresql://127.0.0.1/budgets?service=x", "must not have service"),
        ("postgresql://127.0.0.1/budgets?hostaddr=10.0.0.1", "must not have hostaddr"),
    ],
)
def test_bad_address_is_refused_without_showing_a_password(url, message):
    with pytest.raises(ValueError, match=message) as refused:
        BudgetDatabase(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("mode", ["", "?sslmode=prefer", "?sslmode=require"])
@pytest.mark.parametrize("host", ["db.example", "127.0.0.1,db.example", "[2001:db8::1]:5432"])
def test_another_machine_needs_a_verified_certificate(host, mode):
    url = f"postgresql://deniable@{host}/budgets{mode}"
    with pytest.raises(PlaintextError, match="whose certificate is not verified: add sslmode=verify-full"):
        BudgetDatabase(url)
    assert BudgetDatabase(url, allow_plaintext=True)


def test_another_machine_by_parameter_is_one():
    with pytest.raises(PlaintextError):
        BudgetDatabase("postgresql://127.0.0.1/budgets?host=db.example")


def test_only_two_ways_of_being_away_are_known():
    with pytest.raises(ValueError, match="when_away must be wait or drop, got 'fail'"):
        BudgetDatabase("postgresql://127.0.0.1/budgets", when_away="fail")


def test_shown_address_has_no_user_or_parameters():
    url = f"postgresql://deniable@db.example:5433/budgets{VERIFIED}"
    assert BudgetDatabase(url).shown == "db.example:5433/budgets"
