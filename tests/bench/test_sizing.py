"""The tables of docs/sizing.md match the measured figures and their consequences."""

import re
from pathlib import Path

import pytest

from bench.aggregator import results as aggregator_results
from bench.aggregator.results import PARTS, keep, table
from bench.aggregator.sizing import DERIVED, example, gaps, measured, with_tables, workers_for
from tests.chaos.report import table as chaos_table
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "sizing.md").read_text(encoding="utf-8")

COUNTING = {
    "mechanism": "RAPPOR, 128 bits",
    "reports a pack": 100,
    "collections": 1,
    "reports a CPU second": 100_000,
    "bytes a report in the log": 20,
}
MEMORY = {"collection": "RAPPOR, 8 cohorts of 128 bits", "KiB a collection and window": 100}
FOUND = {"counting": [COUNTING], "memory": [MEMORY], "ids": [{"bytes an id": 16}]}


def test_page_contains_every_measured_table() -> None:
    assert sorted(re.findall(r"<!-- table: ([\w ]+) -->", PAGE)) == sorted([*PARTS, *DERIVED])
    assert with_tables(PAGE, measured()) == PAGE


def test_drifted_figure_is_detected() -> None:
    drifted = PAGE.replace("| workers | ", "| workers | 9")
    assert drifted != PAGE
    assert with_tables(drifted, measured()) == PAGE


@pytest.mark.parametrize(("rate", "expected"), [(1, 1), (50_000, 1), (50_001, 2), (1_000_000, 20)])
def test_workers_are_half_used(rate: float, expected: int) -> None:
    assert workers_for(rate, 100_000) == expected


def test_example_is_worked_out() -> None:
    """83,333 reports/s are 5/3 of one worker's limit; 62 windows of 100 KiB; 2 of 50,000 ids; 134 GiB."""
    assert {row["quantity"]: row["figure"] for row in example(FOUND)} == {
        "reports/s": "83,333",
        "packs/s": "833",
        "workers": "2",
        "partitions": "4 to 8",
        "windows kept": "62",
        "counts, MiB in all": "6",
        "ids, MiB in all": "1.5",
        "log a day, GiB": "134",
        "log of 7 days, 3 replicas, GiB": "2,816",
    }


def test_gaps_match_the_table_of_faults() -> None:
    shown = (REPOSITORY / "bench" / "results" / "chaos.md").read_text(encoding="utf-8")
    assert chaos_table([]) == "".join(shown.splitlines(keepends=True)[:2])
    lines = {line.split(" | ")[0].strip("| "): line.strip("| \n").split(" | ") for line in shown.splitlines()}
    place = shown.splitlines()[0].strip("| ").split(" | ").index("longest gap")
    for row in gaps({}):
        line = lines[str(row["fault"])]
        assert line[place : place + 2] == [
            f"{row['nothing counted, s']} s",
            f"{row['of one partition, s']} s",
        ]


def test_new_measurement_replaces_the_old_part(tmp_path: Path) -> None:
    file = tmp_path / "results" / "figures.json"
    keep("ids", [{"ids": 1}], file)
    keep("counting", [{"packs/s": 2_000}], file)
    keep("ids", [{"ids": 3, "bytes an id": 16.25}], file)
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["counting", "ids"]
    assert text.count(f"On {aggregator_results.machine().partition(', load')[0]}, load ") == 2
    assert "| ids | bytes an id |\n| --- | --- |\n| 3 | 16.2 |\n" in text
    assert measured(file)["ids"] == [{"ids": 3, "bytes an id": 16.25}]


def test_figures_are_formatted_for_reading() -> None:
    assert table([{"a": 1234567.8, "b": 0.01234, "c": "up to 0.5", "d": 0}]).splitlines()[2] == (
        "| 1,234,568 | 0.0123 | up to 0.5 | 0 |"
    )
