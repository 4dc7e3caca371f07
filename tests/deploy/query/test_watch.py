"""What `watch` shows: a table for people, every estimate for programs."""

import asyncio
import io
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from rich.console import Console
from structlog.testing import capture_logs

from deniable.aggregator.records.estimate import (
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberDensity,
    NumberMean,
    NumberQuantile,
    Other,
    PairMargin,
    PairRecord,
    encode_estimate,
)
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection import outage
from deniable.cluster.reading import consumer
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.config.file import load
from deniable.deploy.query import watch
from deniable.deploy.query.watch import (
    CAPTION,
    TABLE_FRAME,
    EveryEstimate,
    _print_line,
    _shown,
    number_table_of,
    table_of,
    without_values,
)
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.frequency.number import LEVELS
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.deploy.doctors import FILE
from tests.support.deploy.estimates import record
from tests.support.paths import REPOSITORY


def shown(estimate: EstimateRecord, rows: int = 10, old_since: int | None = None) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=100).print(table_of(estimate, rows, old_since))
    return output.getvalue().splitlines()


def test_readme_shows_the_columns_of_the_table() -> None:
    (shown,) = re.findall("^ *┃ (value .*) ┃$", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    columns = [column.header for column in table_of(record(["AA"], [0.9]), 1).columns]
    assert re.split(" +┃ +", shown) == columns


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


def number_cells(found: EstimateRecord, rows: int) -> tuple[list[str], list[list[str]]]:
    output = io.StringIO()
    Console(file=output, width=100).print(number_table_of(found, rows, 180))
    lines = output.getvalue().splitlines()
    return lines, [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]


def test_number_is_shown_by_its_mean_quantiles_and_rows() -> None:
    mean, quantiles = NumberMean(12.3456, 0.5, 11.5, 13.25), [NumberQuantile(0.5, 11.0, 10.0, 12.0)]
    density = NumberDensity(0.0, 40.0, [0.2, 0.3, 0.05, 0.45])
    figures = record(["0", "10", "20"], [0.2, 0.3, 0.5], mean=mean, quantiles=quantiles, density=density)
    lines, rows = number_cells(figures, 3)
    assert lines[2].strip() == "old since 1970-01-01 00:03:00Z"
    assert rows == [
        ["mean", "12.346", "11.5 – 13.25", "", ""],
        ["quantile 0.5", "11", "10 – 12", "", ""],
        ["0 to 10", "20.00%", "18.00% – 22.00%", "", "2,400"],
        ["10 to 20", "30.00%", "28.00% – 32.00%", "", "3,600"],
        ["20 to 40", "50.00%", "48.00% – 52.00%", "", "6,000"],
    ]
    assert [row[0] for row in number_cells(figures, 2)[1][2:]] == ["10 to 20", "20 to 40", "… 1 more"]
    older = msgspec.structs.replace(figures, density=None)
    assert number_cells(older, 3)[1][-1][0] == "20 to …"


def test_a_number_fits_a_small_terminal() -> None:
    quantiles = [NumberQuantile(level, 1.0, 0.0, 2.0) for level in LEVELS]
    mean, names = NumberMean(1.0, 0.5, 0.0, 2.0), [str(edge) for edge in range(32)]
    figures = record(names, [1 / 32] * 32, mean=mean, quantiles=quantiles)
    wave = SquareWave.from_epsilon(0.0, 32.0, 256, 4.0)
    output = io.StringIO()
    Console(file=output, width=100).print(_shown(figures, Collection("delay", wave), 24 - TABLE_FRAME, 180))
    assert len(output.getvalue().splitlines()) == 24


@pytest.mark.parametrize(("width", "has_both"), [(60, False), (73, False), (74, True)])
def test_a_narrow_terminal_wraps_no_figure(width: int, has_both: bool) -> None:
    """It shows one interval in place of two that are cut off."""
    bounds = {"low": [0.68] * 4, "high": [0.7] * 4, "low_all": [0.67] * 4, "high_all": [0.71] * 4}
    edges = ["0", "62.5", "125", "187.5"]
    figures = msgspec.structs.replace(
        record(edges, [0.25] * 4, mean=NumberMean(1.0, 0.5, 0.0, 2.0)), **bounds
    )
    wave = SquareWave.from_epsilon(0.0, 250.0, 256, 4.0)
    output = io.StringIO()
    Console(file=output, width=width).print(_shown(figures, Collection("delay", wave), 20, None, width))
    text = output.getvalue()
    assert ("95 % for all" in text, "67.00% – 71.00%" in text) == (has_both, has_both)
    assert len(text.splitlines()) == 2 + 3 + 2 + 4 + 1
    assert "…" not in text.replace("187.5 to …", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_once_shows_all_rows_of_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mean, rows = NumberMean(1.0, 0.5, 0.0, 2.0), [str(edge) for edge in range(16)]
    figures = record(rows, [1 / 16] * 16, mean=mean)

    async def records(*_: object) -> AsyncIterator[tuple[int, SimpleNamespace]]:
        yield 0, SimpleNamespace(key=b"carrier/60", value=encode_estimate(figures))

    path, terminal = tmp_path / "deniable.yaml", Terminal()
    path.write_text(FILE.format(prefix=""), encoding="utf-8")
    loaded = load(path, environment={})
    monkeypatch.setattr(watch, "records_since", records)
    monkeypatch.setattr(sys, "stdout", terminal)
    watch.print_newest(loaded, loaded.collection("carrier"))
    assert "14 to 15" in terminal.getvalue()
    assert " more" not in terminal.getvalue()


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


def test_counts_that_no_true_values_explain_are_named_below_either_table() -> None:
    wrong = record(["0", "10"], [0.4, 0.6], mean=NumberMean(12, 0.5, 11, 13), diagnostics={"fit_p_value": 0})
    for lines in (shown(wrong), number_cells(wrong, 2)[0]):
        end = next(place for place, line in enumerate(lines) if line.startswith("└"))
        assert "contradict the parameters (p < 1e-6)" in " ".join(" ".join(lines[end + 1 :]).split())


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


def test_an_outage_is_told_while_watching(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Consumer:
        def __init__(self, **_: object) -> None:
            self.start = self.stop = lambda: asyncio.sleep(0)
            self.assign = self.seek = lambda *_: None
            self._client = SimpleNamespace()
            self.asked = 0

        async def end_offsets(self, sources: list[TopicPartition]) -> dict[TopicPartition, int]:
            self.asked += 1
            if self.asked == 2:
                raise KafkaTimeoutError
            return dict.fromkeys(sources, 0)

        async def getmany(self, **_: int) -> dict[TopicPartition, list[KafkaRecord]]:
            if len(lines) == 2 or time.monotonic() > deadline:
                raise asyncio.CancelledError
            await asyncio.sleep(0.001)
            return {}

    deadline = time.monotonic() + 10
    path = tmp_path / "deniable.yaml"
    path.write_text(FILE.format(prefix=""), encoding="utf-8")
    loaded = load(path, environment={})
    loaded = replace(loaded, connection=Cluster("127.0.0.1:9"))
    monkeypatch.setattr(consumer, "AIOKafkaConsumer", Consumer)
    monkeypatch.setattr(outage, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "end_with_the_reader", lambda: None)
    with capture_logs() as lines, pytest.raises(asyncio.CancelledError):
        asyncio.run(watch.watch_collection(loaded, loaded.collection("carrier")))
    assert [each["event"] for each in lines] == [
        "Kafka cannot be used; nothing new is shown until it can",
        "Kafka can be used again",
    ]
