"""What `watch` shows: a table for people, every estimate for programs."""

import io
import os
import sys

import msgspec
import pytest
from rich.console import Console

from aggregator.records.estimate import (
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberMean,
    NumberQuantile,
    Other,
    PairMargin,
    PairRecord,
    encode_estimate,
)
from deploy.query.watch import TABLE_FRAME, EveryEstimate, _print_line, number_table_of, table_of
from tests.support.deploy.estimates import record


def shown(estimate: EstimateRecord, rows: int = 10, old_since: int | None = None) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=100).print(table_of(estimate, rows, old_since))
    return output.getvalue().splitlines()


def test_the_table_is_ordered_by_frequency_with_intervals() -> None:
    lines = shown(record(["AA", "[red]B6", "9E"], [0.25, 0.7, 0.01]))
    assert [line.strip() for line in lines[:2]] == [
        "carrier: 12,000 reports, provisional",
        "window from 1970-01-01 00:01:00Z",
    ]
    rows = [line.split("│") for line in lines if "%" in line][1:]
    assert [cell.strip() for cell in rows[0][1:-1]] == ["[red]B6", "70.00%", "68.00% – 72.00%", "8,400"]
    assert [row[1].strip() for row in rows] == ["[red]B6", "AA", "9E"]


def test_independence_of_a_pair_is_below_its_table() -> None:
    empty = ConditionalShares([], [], [], [])
    margins = [PairMargin(name, [], [], [], [], [], []) for name in ("carrier", "origin")]
    for rejected, words, p_value in (
        (True, "depend on each other", "p = 0.00865"),
        (False, "may be independent", "p < 1e-6"),
    ):
        test = IndependenceTest(9.5, 2, 0.00865 if rejected else 2.4e-20, rejected)
        pair = PairRecord([], [], margins, empty, empty, test)
        lines = shown(msgspec.structs.replace(record(["AA / JFK"], [0.9]), pair=pair))
        assert " ".join(" ".join(lines[-2:]).split()).endswith(f"carrier and origin {words}: {p_value}")


def test_a_pair_with_too_few_reports_has_no_verdict() -> None:
    empty = ConditionalShares([], [], [], [])
    margins = [PairMargin(name, [], [], [], [], [], []) for name in ("carrier", "origin")]
    pair = PairRecord([], [], margins, empty, empty, IndependenceTest(0, 0, 1, False))
    lines = shown(msgspec.structs.replace(record(["AA / JFK"], [0.9]), pair=pair))
    assert "too few reports to test whether carrier and origin" in " ".join(" ".join(lines[-2:]).split())


def test_insignificant_values_are_dim() -> None:
    assert [row.style for row in table_of(record(["AA", "9E"], [0.9, 0.01]), 10).rows] == ["", "dim"]


def test_an_unreliable_value_has_no_interval() -> None:
    lines = shown(record(["AA", "9E"], [0.7, 0.2], unreliable=[False, True]))
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "9E" in line or "AA" in line
    ]
    assert [row[2] for row in rows] == ["68.00% – 72.00%", "unreliable"]


def test_final_estimate_is_marked_and_other_has_a_row() -> None:
    known = shown(record(["AA"], [0.7], final=True, other=Other(0.3, 0.1, 0.125, 0.5)))
    assert known[0].strip().endswith("final")
    row = [cell.strip() for cell in known[-2].split("│")[1:-1]]
    assert row == ["(other)", "30.00%", "12.50% – 50.00%", ""]
    assert "unknown" in shown(record(["AA"], [0.7], other=Other(0.3, 0.1)))[-2]


def test_large_collection_is_cut_to_what_a_terminal_holds() -> None:
    many = record([f"v{i}" for i in range(500)], [i / 1000 for i in range(500)], other=Other(0.3, 0.1))
    lines = shown(many, 24 - TABLE_FRAME, old_since=180)
    assert len(lines) == 24
    assert sum("│ v" in line for line in lines) == 24 - TABLE_FRAME
    assert "│ … 485 more" in lines[-3]


def test_values_missing_from_the_record_are_exported() -> None:
    assert "│ … 3000 more" in shown(record(["AA"], [0.7], omitted=3000, other=Other(0.3, 0.1)))[-3]


def test_old_figures_say_since_when() -> None:
    fresh, old = shown(record(["AA"], [0.7])), shown(record(["AA"], [0.7]), old_since=180)
    assert [line.strip() for line in old[1:3]] == [
        "window from 1970-01-01 00:01:00Z",
        "old since 1970-01-01 00:03:00Z",
    ]
    assert (fresh[1], fresh[2:]) == (old[1], old[3:])


def test_json_lines_include_final_estimates_of_older_windows() -> None:
    every = EveryEstimate()
    newer, older = record(["AA"], [1.0], window_start=120), record(["AA"], [1.0], final=True)
    assert every.take(encode_estimate(newer)) == newer
    assert every.take(encode_estimate(older)) == older
    with pytest.raises(msgspec.DecodeError):
        every.take(b"{}")


def test_programs_get_an_estimate_in_parts_as_one() -> None:
    every = EveryEstimate()
    first = record(["AA"], [0.7], final=True, part=1, parts=2, omitted=1, other=Other(0.3, 0.1))
    second = record(["9E"], [0.2], final=True, part=2, parts=2, other=Other(0.1, 0.1))
    assert every.take(encode_estimate(first)) is None
    whole = every.take(encode_estimate(second))
    assert whole == record(["AA", "9E"], [0.7, 0.2], final=True, other=Other(0.1, 0.1))


def test_line_that_nobody_reads_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as ended:
            _print_line(record(["AA"], [1.0]))
        assert ended.value.code == 0
        stdout.flush()


def test_number_is_shown_by_its_mean_and_quantiles() -> None:
    mean, quantiles = NumberMean(12.3456, 0.5, 11.5, 13.25), [NumberQuantile(0.5, 11.0, 10.0, 12.0)]
    output = io.StringIO()
    found = record(["0", "10"], [0.4, 0.6], mean=mean, quantiles=quantiles)
    Console(file=output, width=100).print(number_table_of(found, 180))
    lines = output.getvalue().splitlines()
    assert lines[2].strip() == "old since 1970-01-01 00:03:00Z"
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "–" in line]
    assert rows == [["mean", "12.346", "11.5 – 13.25"], ["quantile 0.5", "11", "10 – 12"]]
