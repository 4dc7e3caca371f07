"""What `deniable init` writes, and what it refuses."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from deniable.config.file import load
from deniable.deploy.offline.check import check
from deniable.deploy.start.init import init
from tests.support.messages import PinMessages, refusal_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(init, list(arguments))


def test_sample_has_the_shares_that_its_comment_states() -> None:
    assert run().exit_code == 0
    with Path("events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["plan"] for row in rows) == {"free": 14_000, "team": 5_000, "business": 1_000}
    assert len({row["user"] for row in rows}) == len(rows)


def test_file_is_valid_also_with_its_commented_collection() -> None:
    run()
    assert [each.name for each in load(Path("deniable.yaml")).collections] == ["plan"]
    text = Path("deniable.yaml").read_text()
    before, mark, rest = text.partition("  # - name: country")
    assert mark
    block, _, after = f"{mark}{rest}".partition("\n\n")
    Path("deniable.yaml").write_text(f"{before}{re.sub('^  # ', '  ', block, flags=re.MULTILINE)}\n\n{after}")
    assert [each.name for each in load(Path("deniable.yaml")).collections] == ["plan", "country"]


def test_file_is_valid_also_with_its_commented_edge_and_relay() -> None:
    run()
    file = Path("deniable.yaml")
    before, mark, rest = file.read_text().partition("# edge:")
    assert mark
    block, _, after = f"{mark}{rest}".partition("\n\n")
    file.write_text(f"{before}{re.sub('^# ', '', block, flags=re.MULTILINE)}\n\n{after}")
    loaded = load(file)
    assert loaded.edge is not None
    assert loaded.relay is not None
    assert loaded.edge.allow_origins == ["https://shop.example"]
    checked = CliRunner().invoke(check, [])
    assert checked.exit_code == 0, checked.output


#: The idea behind each field. With `--clients`, a newcomer meets six before the first estimate.
IDEAS = {
    "name": "collection",
    "values": "collection",
    "mechanism": "mechanism",
    "epsilon": "epsilon",
    "window_seconds": "window",
    "grace_seconds": "window",
    "budget": "budget",
}


def test_sample_needs_five_ideas_and_the_client() -> None:
    run()
    document = YAML(typ="safe", pure=True).load(Path("deniable.yaml").read_text())
    assert document.keys() == {"collections"}
    (collection,) = document["collections"]
    assert len({IDEAS[field] for field in collection}) <= 5
    before, mark, _ = Path("deniable.yaml").read_text().partition("# Nothing below is needed to begin.")
    assert mark
    assert "budget:" in before


def test_commands_can_be_pasted_into_any_shell() -> None:
    """A comment behind a command is an argument in zsh."""
    made = run("shop")
    lines = made.stdout.splitlines()
    assert all(line.startswith(("cd ", "deniable ")) and "#" not in line for line in lines)
    assert [number for number, line in enumerate(lines) if line == "cd shop"] == [0, 3]  # of both terminals
    assert [line.split()[1] for line in lines if line.startswith("deniable")] == [
        "check",
        "dev",
        "produce",
        "watch",
    ]


def test_folder_is_created_and_entered_first() -> None:
    made = run("my shop/a")
    assert made.stdout.splitlines()[0] == "cd 'my shop/a'"
    assert {path.name for path in Path("my shop/a").iterdir()} == {"deniable.yaml", "events.csv"}


@pytest.mark.parametrize("present", ["deniable.yaml", "events.csv"])
def test_existing_files_are_left_alone(present: str) -> None:
    Path(present).write_text("mine")
    refused = run()
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"Error: {present} ")
    assert [(path.name, path.read_text()) for path in Path().iterdir()] == [(present, "mine")]


def test_folder_that_cannot_be_made_is_reported(pin_messages: PinMessages) -> None:
    Path("file").touch()
    pin_messages({"a folder in a file": lambda: refusal_of(run("file/folder"), 1)})
