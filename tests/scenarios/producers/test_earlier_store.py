"""A store left by version 0.1.0 after a kill is read and continued."""

import json
import math
import sqlite3
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from deniable.config.file import load
from deniable.producers.budget.statement import Statements
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from deniable.protocol.secrets.secret import STORE_NAME
from deniable.protocol.wire import decode
from tests.support.paths import REPOSITORY

VECTOR = json.loads((REPOSITORY / "tests/support/vectors/store_v2.json").read_text(encoding="utf-8"))


@pytest.fixture(params=["unchanged", "any"])
def config(tmp_path: Path, request: pytest.FixtureRequest) -> ProducerConfig:
    """The collection file, secret and store of that version."""
    settings = _config(tmp_path, request.param)
    settings.data_dir.mkdir(mode=0o700)
    secret = settings.data_dir / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(bytes.fromhex(VECTOR["secret"]))
    store = settings.data_dir / STORE_NAME
    store.touch(mode=0o600)
    with closing(sqlite3.connect(store)) as database:
        for setting in ("page_size = 8192", "auto_vacuum = 2", "journal_mode = wal"):
            database.execute(f"PRAGMA {setting}")
        database.executescript("\n".join(VECTOR["sql"]))
        database.execute("PRAGMA user_version = 2")
        database.execute("PRAGMA application_id = 1145979468")
    return settings


def test_spending_matches_the_output_of_that_version(config: ProducerConfig) -> None:
    with Statements.in_folder(config.data_dir, config.secret_path, config.allowances) as statements:
        for client, spent in VECTOR["spent"].items():
            found = {name: asdict(one) for name, one in statements.of(client, VECTOR["now"]).items()}
            known = {name: {field: one[field] for field in spent[name]} for name, one in found.items()}
            assert known == spent
            assert all(one["any_epsilon"] >= one["epsilon"] for one in found.values())
            assert all(one["lifetime_any_epsilon"] < math.inf for one in found.values())


def test_what_it_carried_over_is_known_for_one_value_alone(config: ProducerConfig, tmp_path: Path) -> None:
    """It carried what memoized reports cost about one value: no figure is known for values that changed."""
    carried = VECTOR["carried"]
    with closing(sqlite3.connect(config.data_dir / STORE_NAME)) as database:
        database.executescript("\n".join(carried["sql"]))
    changed = _config(tmp_path, "any", tuple(carried["change"]))
    with Statements.in_folder(changed.data_dir, changed.secret_path, changed.allowances) as statements:
        spent = {client: statements.of(client, carried["now"])["place"] for client in carried["spent"]}
    for client, one in spent.items():
        before = carried["spent"][client]["place"]
        assert {field: asdict(one)[field] for field in before} == before
    lifetimes = {client: one.lifetime_any_epsilon for client, one in spent.items()}
    assert lifetimes["one"] == math.inf
    assert all(spent[client].lifetime_epsilon <= lifetimes[client] < math.inf for client in ("two", "five"))
    assert all(one.epsilon <= one.any_epsilon < math.inf for one in spent.values())


@pytest.mark.slow
def test_its_pack_and_buffers_wait_to_be_sent(config: ProducerConfig) -> None:
    """One full pack of 4 reports, and buffers of 1 and 2 reports; Kafka is away, so all stay in the store."""
    producer = Producer(config)
    with pytest.raises(DeliveryError, match="3 packs"):
        producer.close(0.5)
    with closing(sqlite3.connect(config.data_dir / STORE_NAME)) as database:
        packs = [decode(record) for (record,) in database.execute("SELECT record FROM records")]
    assert sorted(pack.reports for pack in packs) == [1, 2, 4]
    known = {allowance.collection.fingerprint for allowance in config.allowances}
    assert {pack.fingerprint for pack in packs} == known


@pytest.mark.slow
def test_its_clients_keep_their_spending(config: ProducerConfig) -> None:
    """Budgets count by the client's key, so the same secret finds the same client."""
    producer = Producer(config)
    receipt = producer.report("plan", ["free"], clients="one")
    assert receipt.stored == 1
    with pytest.raises(DeliveryError):
        producer.close(0.1)
    with Statements.in_folder(config.data_dir, config.secret_path, config.allowances) as statements:
        spent = statements.of("one", time.time())["plan"]
    assert spent.lifetime_reports == VECTOR["spent"]["one"]["plan"]["lifetime_reports"] + 1


def _config(folder: Path, values: str, change: tuple[str, str] = ("", "")) -> ProducerConfig:
    """Write that version's collection file, with what the budget of its memoized collection holds for."""
    text, before = VECTOR["collection_file"], "budget: {epsilon: 8, delta: 1.0e-6, period_seconds: 86400"
    assert text.count(before) == 1
    text = text.replace(before, f"{before}, values: {values}").replace(*change)
    (folder / "deniable.yaml").write_text(text)
    return producer_config(load(folder / "deniable.yaml", environment={}), block_milliseconds=60_000)
