"""`deniable spent`: a table for each client, by line; ids and secrets appear nowhere."""

import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.config.file import load
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.deploy.cli.commands import deniable
from deniable.deploy.offline.costs.spent_facts import client_spent
from deniable.deploy.offline.spent import MAX_LINE_BYTES
from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.values import one
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.budget.statement import Spent
from deniable.producers.opening.from_file import producer_config
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.storage.store import Store, StoreError, check_identity
from deniable.protocol.secrets.secret import Secret, load_secret
from tests.support.deploy.input_fakes import Pieces
from tests.support.deploy.terminal import Terminal
from tests.support.messages import PinMessages

TEXT = """\
revision: 1
collections:
  - {name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], epsilon: 1.0, window_seconds: 60,
     grace_seconds: 30, budget: {epsilon: 4, delta: 1e-6, period_seconds: 4000000000}}
  - {name: delay, mechanism: k-rr, size: 10, epsilon: 0.5, window_seconds: 60, grace_seconds: 9, budget: none}
"""
TABLES = """\
client of line 1
  collection  reports  epsilon unchanged  epsilon any  budget  share  delta  lifetime reports  lifetime unchanged  lifetime any
  carrier           3              3.000        3.000       4   75 %  1e-06                 3               3.000         3.000
  delay             2              1.000        1.000    none         1e-06                 2               1.000         1.000
  total             5              4.000        4.000                 2e-06                 5               4.000         4.000
  unchanged: epsilon while the client's value stays the same; any: whatever its values do
client of line 2
  collection  reports  epsilon unchanged  epsilon any  budget  share  delta  lifetime reports  lifetime unchanged  lifetime any
  carrier           0                  0            0       4    0 %  1e-06                 0                   0             0
  delay             0                  0            0    none         1e-06                 0                   0             0
  total             0                  0            0                 2e-06                 0                   0             0
  unchanged: epsilon while the client's value stays the same; any: whatever its values do
"""  # noqa: E501
FIGURES = (
    "epsilon_of_unchanged_value",
    "epsilon_of_any_values",
    "lifetime_epsilon_of_unchanged_value",
    "lifetime_epsilon_of_any_values",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a collection file, in which a producer has charged the client `anna`."""
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(TEXT)
    charge_in(tmp_path, "anna")
    return tmp_path


def charge_in(folder: Path, *clients: str) -> None:
    """Charge clients in the folder of its producers."""
    config = producer_config(load(folder / "deniable.yaml"))
    secret = load_secret(config.data_dir / "secret")
    with closing(Store(config.data_dir)) as store:
        check_identity(store, secret)
        for client in clients:
            spending = Spending(LocalBudgets(store), config.allowances, time.time())
            charge(spending, store.transaction, secret, client)


def charge(
    spending: Spending,
    transaction: Callable[[], AbstractContextManager[None]],
    secret: Secret,
    client: str = "anna",
) -> None:
    """Charge a client for reports of both collections."""
    now = time.time()
    for name, reports in (("carrier", 3), ("delay", 2)):
        windows = int(now) // 60 * 60 + 60 * np.arange(reports)
        with transaction():
            spending.charge(name, ClientKeys(secret).of([client] * reports), windows, now)


def spent(given: bytes, *arguments: str) -> Result:
    return CliRunner().invoke(deniable, ["spent", *arguments], input=given)


@pytest.mark.usefixtures("folder")
def test_a_table_for_each_client() -> None:
    ended = spent(b"anna\r\nbob\n")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, TABLES, "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("", "any holds if it is known when buckets change; its budget holds for values any"),
        (
            ", changes: 2",
            "any holds if it is known when buckets change; its budget holds for values any; a client shows "
            "at most 2 changes of bucket",
        ),
        (", changes: 0", "its budget holds for values any; a client shows at most 0 changes of bucket"),
    ],
)
def test_longitudinal_hashing_states_its_condition(folder: Path, changes: str, said: str) -> None:
    search = (
        "  - {name: search, mechanism: local-hash-longitudinal, candidates: [x], epsilon_inf: 2,"
        " epsilon_one: 1, window_seconds: 60, grace_seconds: 9,"
        f" budget: {{epsilon: 7, delta: 1e-6, period_seconds: 86400, values: any{changes}}}}}"
    )
    (folder / "deniable.yaml").write_text(f"{TEXT}{search}\n")
    lines = spent(b"anna\n").stdout.splitlines()
    assert lines[-1] == f"  search: {said}"
    explained = [line for line in lines if line.startswith("  if it is known when these change: ")]
    assert len(explained) == ("any holds" in said)
    assert lines[-3 - len(explained)].startswith("  total")


def test_no_credentials_are_needed(folder: Path) -> None:
    """They are of the services' environment, and nothing connects."""
    kafka = "kafka: {bootstrap_servers: 'kafka.example:9093', security: {password_file: p}}\n"
    (folder / "deniable.yaml").write_text(kafka + TEXT)
    ended = spent(b"anna\r\nbob\n")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, TABLES, "")


def test_a_collection_that_left_the_file_is_reported(folder: Path) -> None:
    (folder / "deniable.yaml").write_text("".join(TEXT.splitlines(keepends=True)[:-1]))
    assert spent(b"anna\n").stdout.splitlines()[2:5] == [
        f"  carrier     {3:>7}  {'3.000':>17}  {'3.000':>11}  {'4':>15}   75 %  1e-06  {3:>16}  {'3.000':>18}"
        f"  {'3.000':>12}",
        f"  delay       {0:>7}  {1:>17}  {1:>11}  not in the file             0  {0:>16}  {1:>18}  {1:>12}",
        f"  total       {3:>7}  {'4.000':>17}  {'4.000':>11}  {'':>15}         1e-06  {3:>16}  {'4.000':>18}"
        f"  {'4.000':>12}",
    ]


@pytest.mark.usefixtures("folder")
def test_no_ids_no_tables() -> None:
    assert spent(b"").output == ""


@pytest.mark.slow
def test_a_terminal_is_asked_for_client_ids(folder: Path) -> None:
    with Terminal.running(
        [sys.executable, "-m", "deniable", "spent", "--config", str(folder / "deniable.yaml")]
    ) as terminal:
        assert terminal.read_until("client ids, one a line, then Ctrl-D", 60), terminal.written


@pytest.mark.usefixtures("folder")
def test_empty_line_is_the_client_of_that_name() -> None:
    assert spent(b"\nanna\n").stdout.count("client of line ") == 2


@pytest.mark.usefixtures("folder")
def test_messages_of_client_ids(pin_messages: PinMessages) -> None:
    """A client id that is too long ends the command behind the tables of those before it."""

    def refusal() -> str:
        ended = spent(b"anna\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\nanna\n")
        assert ended.exit_code == 1
        assert ended.stdout.count("client of line ") == 1
        return ended.stderr

    pin_messages({"too long": refusal})


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_client_id_that_is_not_utf_8_is_that_of_produce(folder: Path, layout: str) -> None:
    """Whatever its bytes are: here what `produce` reads from a line is charged."""
    identifier = b"anna-\xff\xe2\x82"
    line = b"a,b\n" + identifier + b",1\n" if layout == "csv" else b'{"a": "' + identifier + b'", "b": 1}\n'
    (batch,) = InputBatches(layout, "b", "a", one).batches(Pieces([line]), Place())
    assert batch.clients is not None
    charge_in(folder, *batch.clients)
    (client,) = json.loads(spent(identifier + b"\n", "--json").stdout)["clients"]
    assert client["total"]["reports"] == 5


@pytest.mark.usefixtures("folder")
def test_json_names_what_each_figure_bounds() -> None:
    ended = spent(b"anna\r\nbob\n", "--json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    assert list(found) == ["version", "clients"]
    anna, bob = found["clients"]
    assert (found["version"], anna["line"], bob["line"]) == (1, 1, 2)
    carrier, delay = anna["collections"]
    epsilon = [carrier.pop(name) for name in FIGURES]
    allowance = load(Path("deniable.yaml")).allowances[0]
    assert epsilon == [allowance.epsilon(3, "any")] * 4
    assert carrier.pop("budget") == {
        "epsilon": 4.0,
        "delta": 1e-6,
        "period_seconds": 4_000_000_000,
        "changes": None,
        "values": "any",
        "spent_share": pytest.approx(0.75, rel=1e-4),
    }
    assert carrier == {
        "reports": 3,
        "epsilon_of_any_values_condition": None,
        "delta": 1e-6,
        "lifetime_reports": 3,
        "name": "carrier",
        "is_in_file": True,
    }
    assert (delay["name"], delay["reports"], delay["budget"]) == ("delay", 2, None)
    assert [anna["total"][name] for name in FIGURES] == [pytest.approx(4, rel=1e-4)] * 4
    assert (anna["total"]["reports"], anna["total"]["delta"]) == (5, 2e-6)
    assert [bob["total"][name] for name in FIGURES] == [0] * 4
    assert json.loads(spent(b"", "--json").stdout) == {"version": 1, "clients": []}


def test_json_states_conditions_and_what_is_not_in_the_file(folder: Path) -> None:
    """Of a collection that left the file nobody knows whether its figures need one."""
    carrier = TEXT.splitlines(keepends=True)[2:4]
    search = (
        "  - {name: search, mechanism: local-hash-longitudinal, candidates: [x], epsilon_inf: 2,"
        " epsilon_one: 1, window_seconds: 60, grace_seconds: 9,"
        " budget: {epsilon: 7, delta: 1e-6, period_seconds: 86400, values: unchanged}}\n"
    )
    (folder / "deniable.yaml").write_text("".join(["revision: 2\ncollections:\n", *carrier, search]))
    (anna,) = json.loads(spent(b"anna\n", "--json").stdout)["clients"]
    conditions = {each["name"]: each["epsilon_of_any_values_condition"] for each in anna["collections"]}
    buckets, values = "if it is known when buckets change", "if it is known when values change"
    assert conditions == {"carrier": None, "search": buckets, "delay": values}
    assert anna["total"]["epsilon_of_any_values_condition"] == f"{buckets}; {values}"
    assert {each["name"]: each["is_in_file"] for each in anna["collections"]} == {
        "carrier": True,
        "search": True,
        "delay": False,
    }
    assert next(each["budget"]["values"] for each in anna["collections"] if each["name"] == "search") == (
        "unchanged"
    )
    covered = Spent(epsilon=1.0, any_epsilon=math.inf)
    (unknown,) = client_spent(1, {"x": covered}, {}).collections
    assert (unknown.epsilon_of_unchanged_value, unknown.epsilon_of_any_values) == (1.0, None)


@pytest.mark.slow
def test_unreadable_file_is_one_line(folder: Path) -> None:
    ended = run(
        [sys.executable, "-m", "deniable", "spent", "--data-dir", "none"],
        input=b"anna\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.startswith(b"Error: store none/producer.sqlite: ")
    assert ended.stderr.count(b"\n") == 1
    assert not (folder / "none").exists()


@pytest.mark.usefixtures("folder")
def test_client_ids_are_not_printed() -> None:
    ended = spent(b"anna\nbob-of-the-canaries\n")
    assert "anna" not in ended.output
    assert "canaries" not in ended.output


@pytest.mark.slow
def test_a_database_is_read_instead_of_the_folder(folder: Path, database: BudgetDatabase) -> None:
    section = f"{{secret_file: shared, budget_store: {{url: '{database.url}'}}}}"
    Path("deniable.yaml").write_text(f"{TEXT}producer: {section}\n")
    secret = load_secret(folder / "shared")
    ended = spent(b"anna\n")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert isinstance(ended.exception, StoreError)
    config = producer_config(load(Path("deniable.yaml")))
    with closing(PostgresBudgets(database, secret)) as budgets:
        charge(Spending(budgets, config.allowances, time.time()), budgets.transaction, secret)
    ended = spent(b"anna\r\nbob\n")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, TABLES, "")
    ended = spent(b"anna\n", "--data-dir", ".deniable")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "producer.budget_store" in ended.stderr
