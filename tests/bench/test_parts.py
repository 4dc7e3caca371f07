"""The table of benchmarks is complete: each part can run, and each result has a page that cites it."""

import importlib
import re

import click
import pytest
from click.testing import CliRunner

from bench import parts
from bench.parts import PARTS, Part, chosen
from bench.sections import FOLDER, Section, read
from tests.support.paths import REPOSITORY

#: Written by `make chaos`, and measured on a machine that is gone.
OTHERS = {"chaos", "older_processor"}
FILES = sorted({each.file for each in PARTS} - {""})
main = importlib.import_module("bench.__main__")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_page_cites_the_file_or_the_command(part: Part) -> None:
    text = (REPOSITORY / part.page).read_text(encoding="utf-8")
    commands = rf"make bench(-{part.group}\b|\s+ARGS=\"?[\w ]*\b{part.name}\b)"
    assert f"{part.file}.md" in text or re.search(commands, text)


def test_results_are_of_parts_and_are_no_longer_than_pages_can_cite() -> None:
    stored = {file.stem for file in FOLDER.iterdir() if file.suffix != ".png"}
    assert stored == {*FILES, *OTHERS}
    lines = sum(len(file.read_text().splitlines()) for file in FOLDER.iterdir() if file.suffix != ".png")
    assert lines < 4000


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_each_section_is_of_a_case_and_says_when_it_was_measured(file: str) -> None:
    names = [name for part in PARTS if part.file == file for name in main.cases_of(part)]
    assert len(names) == len(set(names))
    _, found = read(FOLDER / f"{file}.md")
    assert list(found) == [name for name in names if name in found]
    for text in found.values():
        assert re.search(r"^Measured \d{4}-\d\d-\d\d .*[0-9a-f]{7}", text, re.MULTILINE)


@pytest.mark.slow
def test_make_bench_takes_twenty_minutes_at_most() -> None:
    for part in chosen([]):
        assert set(part.in_bench) <= set(main.cases_of(part))
        assert sum(part.in_bench.values()) <= part.minutes
    assert sum(sum(part.in_bench.values()) for part in PARTS) <= 20


def test_parts_are_chosen_by_name_or_group() -> None:
    assert [each.name for each in chosen(["edge", "poisoning"])] == ["edge", "poisoning"]
    assert [each.name for each in chosen(["devices"])] == ["edge", "relay", "browser"]
    assert {each.group for each in chosen([])} == {"recording", "counting", "estimation", "streaming"}
    with pytest.raises(click.UsageError, match="nope"):
        chosen(["nope"])


@pytest.fixture
def one_part(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A part of three cases, and the file that they are kept in; the command's signals stay as they are."""

    def simulated(runs: int = 7) -> Section:
        return Section("Simulated.", [{"runs": runs}])

    def fails() -> Section:
        raise ValueError("it fell over")

    cases = {"one": simulated, "two": fails, "slow": lambda: Section("Slow.", [{"s": 9}], missed=["9 s"])}
    part = Part("some", "group", "bench.some", "some", "docs/some.md", 1, {"one": 1})
    monkeypatch.setattr(parts, "PARTS", (part,))
    monkeypatch.setattr(main, "PARTS", (part,))
    monkeypatch.setattr(main, "cases_of", lambda _: cases)
    monkeypatch.setattr(main, "FOLDER", tmp_path)
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    return tmp_path / "some.md"


def test_failed_case_stops_no_other(one_part) -> None:
    ended = CliRunner().invoke(main.main, ["some"])
    assert ended.exit_code == 1
    assert re.search(r"two failed: ValueError at fails, line \d+: it fell over\nslow: 9 s\n", ended.stderr)
    assert list(read(one_part)[1]) == ["one", "slow"]


def test_make_bench_measures_its_own_cases(one_part) -> None:
    ended = CliRunner().invoke(main.main, [])
    assert ended.exit_code == 0
    assert "| 7 |" in ended.stdout
    assert list(read(one_part)[1]) == ["one"]


def test_other_runs_are_printed_and_not_written(one_part) -> None:
    ended = CliRunner().invoke(main.main, ["group", "--only", "one", "--runs", "2"])
    assert (ended.exit_code, "| 2 |" in ended.stdout) == (0, True)
    assert "is not" in CliRunner().invoke(main.main, ["some", "--only", "slow", "--runs", "2"]).stderr
    assert CliRunner().invoke(main.main, ["some", "--only", "one", "--print"]).exit_code == 0
    assert not one_part.exists()


def test_list_says_when_a_case_was_measured_last(one_part) -> None:
    CliRunner().invoke(main.main, [])
    lines = CliRunner().invoke(main.main, ["--list"]).stdout.splitlines()
    assert re.fullmatch(
        r"\| some \| group \| one \| \d{4}-\d\d-\d\d at [\w-]+ \| 1 \| yes \| docs/some.md \|", lines[2]
    )
    assert lines[3] == "| some | group | two |  | 1 |  | docs/some.md |"
