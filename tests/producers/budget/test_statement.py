"""Statements of spending, read while producers run, without creating or changing files."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import sum_above
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.budget.statement import Spent, Statements, total
from deniable.producers.config import ProducerConfig
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.storage.store import Store, StoreError, check_identity
from deniable.protocol.secrets.secret import SecretError, load_secret
from tests.support.messages import PinMessages

NOW = 1_700_000_000
DAY = 86400
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)


def statements_of(settings: ProducerConfig) -> Statements:
    return Statements.in_folder(settings.data_dir, settings.secret_path, settings.allowances)


def allowance(name, mechanism, budget, memoize=False):
    collection = Collection(name, mechanism, memoize=memoize, window_seconds=60, grace_seconds=30)
    return Allowance(collection, budget)


ANSWERS = allowance("answers", KRR.from_epsilon(100, 1.0), Budget(8.0, 1e-6, DAY))
OTHERS = allowance("others", BLOOM, Budget(20.0, 1e-9, DAY, values="unchanged"), memoize=True)
FREE = allowance("free", KRR.from_epsilon(4, 0.5), None)
ALL = (ANSWERS, OTHERS, FREE)


def config(folder: Path, *allowances: Allowance, secret_file: Path | None = None) -> ProducerConfig:
    return ProducerConfig(
        allowances=allowances,
        bootstrap_servers="127.0.0.1:9",
        topic="reports",
        partitions=1,
        data_dir=folder,
        secret_file=secret_file,
        block_milliseconds=60_000,
    )


class Used:
    """A folder that a producer has open."""

    def __init__(self, folder: Path, *allowances: Allowance, secret_file: Path | None = None) -> None:
        secret = load_secret(secret_file or folder / "secret")
        self.keys = ClientKeys(secret)
        self.store = Store(folder)
        check_identity(self.store, secret)
        self.spending = Spending(LocalBudgets(self.store), allowances, NOW)

    def spend(self, client: str, name: str, reports: int, now: int = NOW) -> None:
        windows = now // 60 * 60 + 60 * np.arange(reports)
        with self.store.transaction():
            charged = self.spending.charge(name, self.keys.of([client] * reports), windows, now)
        assert charged.accepted.all()


@pytest.fixture
def used(tmp_path):
    used = Used(tmp_path / "data", *ALL)
    with closing(used.store):
        yield used


def shown(folder: Path, client: str, *allowances: Allowance, now: int = NOW) -> dict[str, Spent]:
    with statements_of(config(folder, *allowances)) as statements:
        return statements.of(client, now)


def test_spending_is_readable_while_a_producer_runs(used, tmp_path):
    used.spend("anna", "answers", 3)
    used.spend("anna", "others", 2)
    used.spend("bob", "free", 5)
    with used.store.transaction():  # writers wait for it, readers do not
        anna, bob = (shown(tmp_path / "data", client, *ALL) for client in ("anna", "bob"))
    assert list(anna) == ["answers", "others", "free"]
    cost = ANSWERS.epsilon(3)
    assert anna["answers"] == Spent(3, cost, 3, cost, 1e-6, cost, cost)
    one, free = OTHERS.epsilon(2, "unchanged"), OTHERS.epsilon(2, "any")
    assert anna["others"] == Spent(2, one, 2, one, 1e-9, free, free)
    assert one < free == pytest.approx(2 * BLOOM.epsilon, rel=1e-12)
    assert anna["free"] == Spent(0, 0.0, 0, 0.0, 1e-6)
    assert bob["answers"].lifetime_epsilon == 0.0
    assert bob["free"].epsilon == FREE.epsilon(5)
    assert shown(tmp_path / "data", "carol", *ALL)["others"] == Spent(delta=1e-9)


def test_period_restarts_and_lifetime_continues(used, tmp_path):
    used.spend("anna", "answers", 3)
    tomorrow = shown(tmp_path / "data", "anna", *ALL, now=NOW + DAY)["answers"]
    assert tomorrow == Spent(0, 0.0, 3, ANSWERS.epsilon(3), 1e-6, 0.0, ANSWERS.epsilon(3))
    used.spend("anna", "answers", 2, NOW + DAY)
    tomorrow = shown(tmp_path / "data", "anna", *ALL, now=NOW + DAY)["answers"]
    costs = ANSWERS.epsilon(2), 5, ANSWERS.epsilon(5)
    assert tomorrow == Spent(2, *costs, 1e-6, costs[0], costs[2])


def test_collections_and_their_deltas_add_up(used, tmp_path):
    for name in ("answers", "others", "free"):
        used.spend("anna", name, 2)
    both = total(shown(tmp_path / "data", "anna", *ALL).values())
    assert (both.reports, both.lifetime_reports) == (6, 6)
    costs = [each.epsilon(2, "unchanged") for each in ALL]
    assert both.epsilon == sum_above(*costs) == both.lifetime_epsilon
    assert both.any_epsilon == sum_above(*(each.epsilon(2, "any") for each in ALL)) > both.epsilon
    assert both.delta == pytest.approx(2e-6 + 1e-9)
    assert total([]) == Spent()


def test_reported_spending_equals_charges(used, tmp_path):
    """After changes of parameters, of the period length, and of both."""
    used.spend("anna", "answers", 3)
    for mechanism, period_seconds in ((100, 30 * DAY), (50, 30 * DAY), (100, DAY // 24), (20, 60 * DAY)):
        changed = allowance("answers", KRR.from_epsilon(mechanism, 1.0), Budget(9.0, 1e-6, period_seconds))
        before = shown(tmp_path / "data", "anna", changed)["answers"]
        kept = Used(tmp_path / "data", changed)
        with closing(kept.store):
            assert kept.spending.spent(kept.keys.of(["anna"])[0], NOW)["answers"] == before
        assert before.epsilon >= min(3.0, ANSWERS.epsilon(3))


def test_removed_collection_counts_its_lifetime_spending(used, tmp_path):
    used.spend("anna", "answers", 3)
    used.spend("anna", "others", 4)
    used.spend("anna", "answers", 2, NOW + DAY)
    spent = shown(tmp_path / "data", "anna", FREE, now=NOW + DAY)
    assert list(spent) == ["free", "answers", "others"]
    assert spent["answers"].epsilon == spent["answers"].lifetime_epsilon >= 5 * ANSWERS.epsilon_per_report
    assert spent["answers"].epsilon == pytest.approx(5 * ANSWERS.epsilon_per_report, rel=1e-6)
    assert spent["others"].epsilon == pytest.approx(min(4 * BLOOM.epsilon, BLOOM.epsilon_inf), rel=1e-6)
    assert total(spent.values()).delta == FREE.delta


def test_new_collection_is_unspent(used, tmp_path):
    fresh = allowance("fresh", KRR.from_epsilon(4, 0.5), Budget(1.0, 1e-7, DAY))
    assert shown(tmp_path / "data", "anna", fresh)["fresh"] == Spent(delta=1e-7)


def test_reading_writes_nothing(used, tmp_path):
    used.spend("anna", "answers", 3)
    changed = allowance("answers", KRR.from_epsilon(7, 1.0), Budget(8.0, 1e-6, 30 * DAY))
    before = list(used.store.rows("PRAGMA data_version"))
    tables = used.store.rows("SELECT name FROM sqlite_schema")
    shown(tmp_path / "data", "anna", changed, allowance("fresh", BLOOM, None))
    shown(tmp_path / "data", "nobody", changed)
    assert used.store.rows("PRAGMA data_version") == before
    assert used.store.rows("SELECT name FROM sqlite_schema") == tables


def test_unused_folder_is_reported_and_unchanged(tmp_path: Path, pin_messages: PinMessages) -> None:
    def read(folder: Path) -> None:
        statements_of(config(folder, ANSWERS))

    (tmp_path / "producer.sqlite").touch(0o600)
    pin_messages(
        {"no folder is there": lambda: read(tmp_path / "none"), "the store is empty": lambda: read(tmp_path)}
    )
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("producer.sqlite", 0)]


def test_unused_store_is_reported_and_unchanged(tmp_path):
    load_secret(tmp_path / "secret")
    with closing(Store(tmp_path)) as store:
        with pytest.raises(StoreError):
            statements_of(config(tmp_path, ANSWERS))
        assert store.rows("SELECT digest FROM identity") == []


def test_missing_secret_is_reported_not_created(used, tmp_path):
    (tmp_path / "data" / "secret").unlink()
    with pytest.raises(SecretError):
        statements_of(config(tmp_path / "data", ANSWERS))
    assert not (tmp_path / "data" / "secret").exists()


def test_other_secret_is_refused(used, tmp_path):
    other = tmp_path / "other"
    load_secret(other)
    with pytest.raises(SecretError, match=str(tmp_path / "data")):
        statements_of(config(tmp_path / "data", ANSWERS, secret_file=other))


def test_given_secret_is_read(tmp_path):
    given = tmp_path / "given"
    used = Used(tmp_path / "data", ANSWERS, secret_file=given)
    with closing(used.store):
        used.spend("anna", "answers", 1)
    with statements_of(config(tmp_path / "data", ANSWERS, secret_file=given)) as statements:
        assert statements.of("anna", NOW)["answers"].reports == 1
    with pytest.raises(StoreError):
        statements.of("anna", NOW)
