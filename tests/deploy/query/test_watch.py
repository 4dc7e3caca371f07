"""What `watch` shows: a table for people, every estimate for programs."""

import io
import os
import sys
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from deniable.aggregator.records.estimate import (
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
from deniable.deploy.query.watch import (
    CAPTION,
    TABLE_FRAME,
    EveryEstimate,
    _print_line,
    number_table_of,
    table_of,
    without_values,
)
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
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
    assert [cell.strip() for cell in rows[0][1:-1]] == ["[red]B6", "70.00%", "68.00% – 72.00%", "", "8,400"]
    assert [row[1].strip() for row in rows] == ["[red]B6", "AA", "9E"]


def test_intervals_for_all_values_are_beside_those_of_one() -> None:
    both = msgspec.structs.replace(record(["AA"], [0.7]), low_all=[0.66], high_all=[0.74])
    row = next(line for line in shown(both) if "AA" in line)
    assert [cell.strip() for cell in row.split("│")[3:5]] == ["68.00% – 72.00%", "66.00% – 74.00%"]


def test_found_texts_are_new_in_five_windows_and_cut_ones_end_in_dots() -> None:
    """A record's windows last 60 s: the text found at 0 is new until the window from 300 on."""
    for start, is_new in ((240, True), (300, False)):
        grown = record(["weathe", "news", "maps"], [0.5, 0.3, 0.2], window_start=start)
        grown = msgspec.structs.replace(grown, window_end=start + 60, discovered_at=[0, 0, None])
        output = io.StringIO()
        Console(file=output, width=100).print(table_of(grown, 10, longest=6))
        rows = [line.split("│")[1].strip() for line in output.getvalue().splitlines() if " – " in line]
        mark = " (new)" if is_new else ""
        assert rows == [f"weathe...{mark}", f"news{mark}", "maps"]


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
    assert row == ["(other)", "30.00%", "12.50% – 50.00%", "", ""]
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


def test_names_that_a_terminal_hides_are_quoted() -> None:
    rows = [line for line in shown(record(["", "AA\x1b[2J", "JFK"], [0.5, 0.4, 0.1])) if " – " in line]
    assert [row.split("│")[1].strip() for row in rows] == ['""', "'AA\\x1b[2J'", "JFK"]


def test_a_list_that_lacks_strings_is_named_below_its_table() -> None:
    figures = {"chi_square_ratio": 3.8, "chi_square_limit": 1.27}
    lines = shown(record(["AA"], [0.7], diagnostics=figures))
    end = next(place for place, line in enumerate(lines) if line.startswith("└"))
    assert " ".join(" ".join(lines[end + 1 :]).split()) == (
        "the list is incomplete: reports have bits that no listed string explains (chi-square ratio 3.80, "
        "above 1.27); deniable decode carrier --candidates FILE tries other strings"
    )
    assert len(lines[end + 1 :]) <= CAPTION
    complete = shown(record(["AA"], [0.7], diagnostics={**figures, "chi_square_ratio": 1.27}))
    assert complete[-1].startswith("└")


def test_one_report_is_no_plural() -> None:
    assert shown(record(["AA"], [1.0], reports=1))[0].strip() == "carrier: 1 report, provisional"


def test_a_collection_without_values_says_what_to_do() -> None:
    tree = Collection("search", PrefixTree.from_epsilon((1, 2), 2.0))
    assert without_values(tree) == (
        "search has no candidates, so no shares are estimated: deniable decode search --grow --last 1d finds "
        "frequent texts of the past; with a section grow in the collection file, workers list what they find"
    )
    growing = without_values(replace(tree, growth=GrowthRule(5, 0.05)))
    assert growing.startswith("no text is listed now; what growing finds is listed from the next window")
