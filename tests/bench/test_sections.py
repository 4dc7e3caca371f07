"""Results are kept section by section, say when and where they were measured, and can be read back."""

import re
from pathlib import Path

import pytest

from bench import sections
from bench.sections import Section, keep, number, read, rows_of, setting, table, text_of

FIRST = Section("What was done.", [{"N": 1000, "covered": 95.25}], "All is well.")
SECOND = Section("More.", [{"a": "b"}], missed=["it is slow"])
DAY = "Measured 2026-11-30 at abc."


def test_text_says_what_was_done_where_and_what_was_missed() -> None:
    assert text_of(FIRST, DAY) == (
        "What was done.\n\nMeasured 2026-11-30 at abc.\n\n"
        "| N | covered |\n| --- | --- |\n| 1,000 | 95.2 |\n\nAll is well.\n"
    )
    assert text_of(SECOND, DAY).endswith("| b |\n\n- **Not met**: it is slow\n")


def test_new_measurement_replaces_its_section_alone(tmp_path: Path) -> None:
    file, order = tmp_path / "results" / "some_figures.md", ["one", "two"]
    keep(file, "two", text_of(SECOND, DAY), order)
    keep(file, "older", text_of(SECOND, DAY), order)
    keep(file, "one", text_of(FIRST, DAY), order)
    keep(file, "two", text_of(FIRST, "Measured today."), order)
    head, found = read(file)
    assert head == "# Some figures\n"
    assert list(found) == ["one", "two", "older"]
    assert found["one"] == text_of(FIRST, DAY)
    assert found["two"] == text_of(FIRST, "Measured today.")


def test_rows_are_read_as_shown(tmp_path: Path) -> None:
    """Of the first table of a section, so that one with several can be read, too."""
    file = tmp_path / "some.md"
    keep(file, "one", text_of(FIRST, DAY) + "\n| other |\n| --- |\n| 1 |\n", [])
    assert rows_of(file, "one") == [{"N": "1,000", "covered": "95.2"}]
    assert number("1,000.5") == 1000.5


def test_setting_has_date_commit_machine_and_load() -> None:
    place = (
        r"Measured \d{4}-\d\d-\d\d at [0-9a-f]{7,}(-dirty)? on \d+ cores, \d+ GiB, .*, load \d+\.\d before\."
    )
    assert re.fullmatch(place, setting())


def test_setting_is_known_without_git_and_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sections, "ROOT", tmp_path)
    monkeypatch.setattr(sections, "PROCESSORS", tmp_path / "none")
    assert " at an unknown commit on " in setting()


def test_figures_are_formatted_for_reading() -> None:
    assert table([{"a": 1234567.8, "b": 0.01234, "c": "up to 0.5", "d": 0}]).splitlines()[2] == (
        "| 1,234,568 | 0.0123 | up to 0.5 | 0 |"
    )
