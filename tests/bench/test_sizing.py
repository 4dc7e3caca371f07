"""The tables of docs/sizing.md match the measured figures and their consequences."""

import re

import pytest

from bench.aggregator.sizing import DERIVED, example, gaps, measured, with_tables, workers_for
from tests.chaos.report import table as chaos_table
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "sizing.md").read_text(encoding="utf-8")

COUNTING = {
    "mechanism": "RAPPOR, 128 bits",
    "reports a pack": "100",
    "collections": "1",
    "reports a CPU second": "100,000",
    "bytes a report in the log": "20",
}
MEMORY = {"collection": "RAPPOR, 8 cohorts of 128 bits", "KiB a collection and window": "100"}
FOUND = {"counting": [COUNTING], "memory": [MEMORY], "ids": [{"bytes an id": "16"}]}


def test_page_contains_every_measured_table() -> None:
    assert sorted(re.findall(r"<!-- table: ([\w ]+) -->", PAGE)) == sorted([*measured(), *DERIVED])
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
