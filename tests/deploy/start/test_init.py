"""What `deniable init` writes, and what it refuses."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.config.file import load
from deploy.start.init import init


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


def test_folder_is_created_and_entered_first() -> None:
    made = run("my shop/a")
    assert made.stdout.splitlines()[0] == "cd 'my shop/a'"
    assert {path.name for path in Path("my shop/a").iterdir()} == {"deniable.yaml", "events.csv"}


@pytest.mark.parametrize("present", ["deniable.yaml", "events.csv"])
def test_existing_files_are_left_alone(present: str) -> None:
    Path(present).write_text("mine")
    refused = run()
    assert refused.exit_code == 1
    assert refused.stderr == (
        f"Error: {present} exists and is left as it is; name another folder: deniable init FOLDER\n"
    )
    assert [(path.name, path.read_text()) for path in Path().iterdir()] == [(present, "mine")]


def test_folder_that_cannot_be_made_is_reported() -> None:
    Path("file").touch()
    refused = run("file/folder")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: file/folder cannot be written: Not a directory; name a folder ")
