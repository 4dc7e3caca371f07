"""`deniable spent`: a table for each client, by line; ids and secrets appear nowhere."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deploy.cli.commands import deniable
from deploy.config.file import load
from deploy.config.producer import producer_config
from deploy.offline.spent import MAX_LINE_BYTES
from producers.budget.local_budgets import LocalBudgets
from producers.budget.postgres.budgets import PostgresBudgets
from producers.budget.postgres.database import BudgetDatabase
from producers.budget.spending import Spending
from producers.randomization.prf import ClientKeys
from producers.randomization.secret import Secret, load_secret
from producers.storage.store import Store, check_identity
from tests.support.deploy.terminal import Terminal

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a collection file, in which a producer has charged the client `anna`."""
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(TEXT)
    config = producer_config(load(Path("deniable.yaml")))
    secret = load_secret(config.data_dir / "secret")
    with closing(Store(config.data_dir)) as store:
        check_identity(store, secret)
        charge(Spending(LocalBudgets(store), config.allowances, time.time()), store.transaction, secret)
    return tmp_path


def charge(
    spending: Spending, transaction: Callable[[], AbstractContextManager[None]], secret: Secret
) -> None:
    """Charge the client `anna` for reports of both collections."""
    now = time.time()
    for name, reports in (("carrier", 3), ("delay", 2)):
        windows = int(now) // 60 * 60 + 60 * np.arange(reports)
        with transaction():
            spending.charge(name, ClientKeys(secret).of(["anna"] * reports), windows, now)


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
        [sys.executable, "-m", "deploy", "spent", "--config", str(folder / "deniable.yaml")]
    ) as terminal:
        assert terminal.read_until("client ids, one a line, then Ctrl-D", 60), terminal.written


@pytest.mark.usefixtures("folder")
def test_empty_line_is_the_client_of_that_name() -> None:
    assert spent(b"\nanna\n").stdout.count("client of line ") == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"secret-\xff-id", "line 2 of stdin: not UTF-8"),
        (b"x" * (MAX_LINE_BYTES + 1), f"line 2 of stdin: longer than {MAX_LINE_BYTES} bytes"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_invalid_client_id_ends_the_command(line: bytes, message: str) -> None:
    ended = spent(b"anna\n" + line + b"\nanna\n")
    assert (ended.exit_code, ended.stderr) == (1, f"Error: {message}\n")
    assert ended.stdout.count("client of line ") == 1


@pytest.mark.slow
def test_unreadable_file_is_one_line(folder: Path) -> None:
    ended = run(
        [sys.executable, "-m", "deploy", "spent", "--data-dir", "none"],
        input=b"anna\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert (
        ended.stderr
        == b"Error: store none/producer.sqlite: there is none; no producer has used this folder: run one, "
        b"or name another folder (--data-dir)\n"
    )
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
    assert str(ended.exception).endswith(": no producer has used it")
    config = producer_config(load(Path("deniable.yaml")))
    with closing(PostgresBudgets(database, secret)) as budgets:
        charge(Spending(budgets, config.allowances, time.time()), budgets.transaction, secret)
    ended = spent(b"anna\r\nbob\n")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, TABLES, "")
    ended = spent(b"anna\n", "--data-dir", ".deniable")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--data-dir cannot be used: producer.budget_store has the budgets" in ended.stderr
