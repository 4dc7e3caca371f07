"""Tables without a broker: from JSON lines, from a worker, and what is refused."""

import asyncio
import copy
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.analysis.conftest import warnings_of
from tests.support.messages import PinMessages

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.comparison import JoinedPeriod, check_comparable, compare_periods
from deniable.analysis.errors import AnalysisError, needed
from deniable.analysis.functions.roll_ups import with_edges
from deniable.analysis.tables.file_formats import write_table
from deniable.analysis.tables.window_table import window_table, windows_of
from deniable.deploy.query.compare import lines_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of
from tests.support.deploy.collection_texts import WHOLE

FINAL = changed(estimate_of(), final=True)
PROVISIONAL = changed(FINAL, final=False, window_start=T0 + 10, window_end=T0 + 20)
EARLY, LATE = Period(T0, T0 + 10), Period(T0 + 10, T0 + 20)


def test_json_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(b"\n".join([encode_estimate(FINAL), b"", encode_estimate(PROVISIONAL), b"{}"]) + b"\n")
    with pytest.warns(UserWarning, match="fruit"):
        finals = deniable.read_estimates(collection="fruit", files=file)
    assert finals["frequency"].to_pylist() == FINAL.frequency
    with pytest.warns(UserWarning, match="fruit"):
        both = deniable.read_estimates(collection="fruit", files=[file], provisional=True)
    assert both["final"].to_pylist() == [True] * 3 + [False] * 3
    with pytest.warns(UserWarning, match="fruit"):
        none = deniable.read_estimates(collection="fruit", files=file, start=T0 + 1)
    assert (len(none), none.about["windows"]) == (0, 0)


def test_counts_that_contradict_the_parameters_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(encode_estimate(changed(FINAL, diagnostics={"fit_p_value": 1e-9})))
    warned = partial(
        pytest.warns, UserWarning, match="fruit: the counts of 1 window contradict the parameters"
    )
    with warned():
        table = deniable.read_estimates(collection="fruit", files=file)
    for ending in ("parquet", "csv"):
        write_table(table.arrow, tmp_path / f"exported.{ending}", ending)
        with warned():
            again = deniable.read_estimates(collection="fruit", files=tmp_path / f"exported.{ending}")
        assert again["fit_p_value"].to_pylist() == [1e-9] * 3


class Handler(BaseHTTPRequestHandler):
    body: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_file_of_an_older_version_lacks_columns(tmp_path: Path, ending: str) -> None:
    lines = tmp_path / "watched.jsonl"
    lines.write_bytes(encode_estimate(FINAL))
    table = deniable.read_estimates(collection="fruit", files=lines)
    later = ["low_all", "high_all", "unbiased"]
    for folder, written in (("new", table.arrow), ("old", table.arrow.drop_columns(later))):
        (tmp_path / folder).mkdir()
        write_table(written, tmp_path / folder / f"estimates.{ending}", ending)
    new = deniable.read_estimates(collection="fruit", files=tmp_path / "new")
    old = deniable.read_estimates(collection="fruit", files=tmp_path / "old")
    for name in later:
        assert new[name].to_pylist() == getattr(FINAL, name)
        assert old[name].to_pylist() == [None] * 3
    assert old["high"].to_pylist() == FINAL.high


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_rows_of_a_number_say_where_they_end(tmp_path: Path, ending: str) -> None:
    """The last one at the maximum; files of older versions and other mechanisms have no such edge."""
    age = Collection("age", SquareWave.from_epsilon(-0.5, 99.5, 20, 2.0), window_seconds=10)
    counts = np.arange(age.width)[None] + 100
    window = WindowCounts(counts, counts.sum(axis=1), 1, 0)
    record = window_estimate.record_of(age, T0, window, window_estimate.estimate(age, window), final=True)
    lines = tmp_path / "watched.jsonl"
    lines.write_bytes(b"\n".join(map(encode_estimate, (record, FINAL))))
    table = deniable.read_estimates(collection="age", files=lines)
    write_table(table.arrow, tmp_path / f"new.{ending}", ending)
    write_table(table.arrow.drop_columns(["upper"]), tmp_path / f"old.{ending}", ending)
    read = {
        name: deniable.read_estimates(collection="age", files=tmp_path / f"{name}.{ending}")
        for name in ("new", "old")
    }
    upper = [*map(float, record.values[1:]), 99.5]
    assert table["upper"].to_pylist() == upper
    assert read["new"]["upper"].to_pylist() == upper
    assert read["old"]["upper"].to_pylist() == [None] * len(upper)
    fruit = deniable.read_estimates(collection="fruit", files=lines, other=True)
    assert fruit["upper"].to_pylist() == [None] * 4
    foreign = encode_estimate(changed(record, values=[*"abcdefghijklmnopqrstuvwxyz"[: len(upper)]]))
    lines.write_bytes(foreign)
    with pytest.warns(UserWarning, match="not of this version"):
        assert len(deniable.read_estimates(collection="age", files=lines)) == 0


@pytest.mark.slow
def test_worker_that_has_a_first_part_alone_is_read(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [encode_estimate(changed(FINAL, parts=3)), encode_estimate(PROVISIONAL)]
    monkeypatch.setattr(Handler, "body", b'{"estimates":[' + b",".join(kept) + b"]}")
    table = deniable.read_estimates(worker=address, collection="fruit")
    assert table["low"].to_pylist() == FINAL.low


def test_collection_that_no_file_holds_is_warned_of_with_those_there_are(tmp_path: Path) -> None:
    """A typo must not look like a period without reports: in exported folders, single files and lines."""
    lines = tmp_path / "watched.jsonl"
    lines.write_bytes(encode_estimate(FINAL))
    folder = tmp_path / "exported" / "collection=fruit" / "day=2026-01-01"
    folder.mkdir(parents=True)
    file = folder / "part.parquet"
    write_table(deniable.read_estimates(collection="fruit", files=lines, other=True).arrow, file, "parquet")
    single = tmp_path / "single.parquet"
    single.write_bytes(file.read_bytes())
    for each in (lines, tmp_path / "exported", single):
        assert len(deniable.read_estimates(collection="fruit", files=each)) == 3
        with pytest.warns(UserWarning, match="there are: fruit$"):
            assert len(deniable.read_estimates(collection="fruits", files=each)) == 0


def test_table_is_an_arrow_table_in_use(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(encode_estimate(FINAL))
    table = deniable.read_estimates(collection="fruit", files=file)
    assert (table.num_rows, len(table), table.schema.names[0]) == (3, 3, "collection")
    assert "3 rows: collection, window_start" in repr(table)
    assert copy.copy(table) == table
    assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301 - ours
    with pytest.raises(AttributeError, match="frequencies"):
        _ = table.frequencies


@pytest.mark.slow
def test_arrow_methods_take_tables_and_functions_take_arrow(tmp_path: Path) -> None:
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    file = tmp_path / "watched.jsonl"
    file.write_bytes(encode_estimate(FINAL))
    table, again = (deniable.read_estimates(collection="fruit", files=file) for _ in range(2))
    assert table.equals(again)
    assert table.equals(other=again)
    texts = deniable.ArrowTable(again.select(["value"]), {})
    assert table.join(texts, "value").num_rows == 3
    assert table.join(right_table=texts, keys="value").num_rows == 3
    assert table.column("value").to_pylist() == FINAL.values
    assert pyarrow.concat_tables([table.arrow, again.arrow]).num_rows == 6
    assert polars.DataFrame(table).equals(table.to_polars())


def windows(collection: Collection, numbers: range, seed: int = 1) -> dict[int, WindowCounts]:
    rng = np.random.default_rng(seed)
    return {
        T0 + 10 * i: WindowCounts(
            rng.integers(0, 50, (collection.cohorts, collection.width)),
            rng.integers(50, 99, collection.cohorts),
            i,
            1,
        )
        for i in numbers
    }


@pytest.mark.parametrize("collection", [FRUIT, PLACE], ids=["k-rr", "rappor"])
def test_windows_are_what_was_put_into_the_table(collection: Collection) -> None:
    """In any order of rows; a table that lacks rows, or is of other parameters, is refused."""
    given = windows(collection, range(5))
    table = window_table(collection, given)
    found = windows_of(collection, table.take(list(reversed(range(len(table))))))
    assert [*found] == [*given]
    for start, counts in given.items():
        assert (found[start].counts == counts.counts).all()
        assert (found[start].cohort_sizes == counts.cohort_sizes).all()
        assert (found[start].packs, found[start].rejected) == (counts.packs, counts.rejected)
    assert windows_of(collection, table.slice(0, 0)) == {}
    other = PLACE if collection is FRUIT else FRUIT
    for wrong in (other, collection):
        with pytest.raises(AnalysisError, match=wrong.name):
            windows_of(wrong, table if wrong is other else table.take([0, *range(len(table))]))


def joined(counts: list[int]) -> Joined:
    array = np.array([counts], np.int64)
    return Joined(WindowCounts(array, array.sum(axis=1), 1, 0), {T0: sum(counts)}, [], {}, 0)


def test_comparison_is_printed_with_shares_within_their_range() -> None:
    """Noise takes shares and differences out of their ranges; the record keeps what it did."""
    sides = (JoinedPeriod(EARLY, joined([9000, 30, 10, 10])), JoinedPeriod(LATE, joined([10, 9000, 40, 10])))
    record = compare_periods(FRUIT, *sides, 0.05)
    assert min(record.first_share) < 0
    assert max(record.first_share) > 1
    rows = {line.split()[0]: line.split()[1:4] for line in lines_of(record)[4:]}
    assert rows["apple"][:2] == ["1.000000", "0.000000"]
    assert rows["fig"][:2] == ["0.000000", "1.000000"]
    assert record.difference[record.values.index("apple")] < -1
    assert rows["apple"][2] == "-1.000000"


def test_comparison_is_printed_by_falling_evidence() -> None:
    sides = (
        JoinedPeriod(EARLY, joined([5000, 3000, 2000, 1500])),
        JoinedPeriod(LATE, joined([4000, 4000, 2000, 1500])),
    )
    record = compare_periods(FRUIT, *sides, 0.05)
    lines = lines_of(record)
    assert lines[0] == "2026-01-01T00:00:00Z/2026-01-01T00:00:10Z: 11,500 reports in 1 window"
    assert lines[2:5] == [
        "2 of 4 shares differ (*); of those, at most 5 % are expected to be false",
        "* allows for the randomizers' noise alone: where other people report in each period, shares may",
        "differ although nobody changed",
    ]
    assert {line.split()[0] for line in lines[6:8]} == {"apple", "fig"}
    assert [line.endswith("*") for line in lines[6:]] == [True, True, False, False]
    assert record.table()["value"].to_pylist() == ["apple", "fig", "kiwi", "(other)"]
    about = json.loads(json.dumps(record.table().about))
    assert about["reports"] == [11_500, 11_500]
    assert [(each["windows"], each["expected"]) for each in about["coverage"]] == [(1, 1), (1, 1)]


def test_event_loop_of_the_caller_is_not_needed(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(encode_estimate(FINAL))

    async def read() -> int:
        return len(deniable.read_estimates(collection="fruit", files=file))

    assert asyncio.run(read()) == 3


@pytest.mark.parametrize("is_former_first", [True, False])
def test_periods_on_both_sides_of_a_change_are_not_compared(is_former_first: bool) -> None:
    here = JoinedPeriod(LATE, joined([5000, 3000, 2000, 1500]))
    gone = JoinedPeriod(EARLY, replace(joined([0, 0, 0, 0]), reports={}, others={0xAB: 12}))
    sides = (gone, here) if is_former_first else (here, gone)
    with pytest.raises(AnalysisError, match="--former FILE"):
        compare_periods(FRUIT, *sides, 0.05)


@pytest.mark.slow
def test_messages_of_readers(
    pin_messages: PinMessages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Wrong types are named: else they fail somewhere inside, as AttributeError or TypeError."""
    monkeypatch.chdir(tmp_path)
    Path("x.txt").touch()
    Path("lines.jsonl").write_bytes(encode_estimate(FINAL) + b"\n{}")

    def read(**options: Any) -> Any:
        return deniable.read_estimates(**{"collection": "fruit", "files": "absent", **options})

    def kept() -> str:
        monkeypatch.setattr(Handler, "body", b'{"estimates":[' + encode_estimate(FINAL) + b"]}")
        return warnings_of(lambda: deniable.read_estimates(worker=address, collection="fruit", end=T0))

    def of_another_server() -> None:
        try:
            deniable.read_estimates(worker=address, collection="fruit")
        except AnalysisError as error:
            raise AnalysisError(str(error).replace(address, "ADDRESS/")) from error

    calls = (deniable.read_estimates, deniable.read_windows, deniable.rollup, deniable.grow)
    pin_messages(
        {
            "files and a worker": lambda: read(worker="http://127.0.0.1:9"),
            "no files": lambda: read(files=[]),
            "a file of another kind": lambda: read(files="x.txt"),
            "files is a number": lambda: read(files=5),
            "a file is a number": lambda: read(files=["x", 5]),
            "collection is a number": lambda: read(collection=5),
            "last is a number": lambda: read(last=30),
            "worker is a number": lambda: read(files=None, worker=5),
            "config is a number": lambda: read(config=5),
            "another server": of_another_server,
            "a worker that keeps later windows": kept,
            "a record of another version": lambda: warnings_of(lambda: read(files="lines.jsonl")),
            "a collection that no file holds": lambda: warnings_of(
                lambda: read(collection="fruits", files="lines.jsonl")
            ),
            "a missing library": lambda: needed("absent_library.part", "to_x", "pip install absent"),
        }
        | {f"{each.__name__} without a collection file": partial(each, collection="fruit") for each in calls}
    )


def test_messages_of_comparisons(pin_messages: PinMessages, tmp_path: Path) -> None:
    """No collection file has both sides of a change; where a side has some windows, the remedy is another."""
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    number = Collection(name="age", mechanism=SquareWave.from_epsilon(0.0, 100.0, 16, 1.0), window_seconds=10)
    here = JoinedPeriod(LATE, joined([5000, 3000, 2000, 1500]))
    few = JoinedPeriod(EARLY, joined([1, 1, 0, 0]))
    others = {0xAB: 12}
    gone = JoinedPeriod(EARLY, replace(joined([0, 0, 0, 0]), reports={}, others=others))
    fewer = JoinedPeriod(EARLY, replace(joined([1, 1, 0, 0]), others=others))
    check_comparable(FRUIT, EARLY, LATE)

    def compare(**options: Any) -> object:
        given = {"collection": "carrier", "first": "2026-01", "second": "2026-02", "files": tmp_path}
        return deniable.compare(config, **{**given, **options})

    pin_messages(
        {"rate is a text": lambda: compare(rate="x")}
        | {f"rate is {each}": partial(compare, rate=each) for each in (0.6, 1e-10, float("nan"))}
        | {
            "first is a number": lambda: compare(first=5),
            "second is one time": lambda: compare(second=(T0,)),
            "collection is a number": lambda: compare(collection=5),
            "periods that overlap": lambda: check_comparable(FRUIT, EARLY, Period(T0 + 9, T0 + 20)),
            "a collection of numbers": lambda: check_comparable(number, EARLY, LATE),
            "too few reports": lambda: compare_periods(FRUIT, few, few, 0.05),
            "periods on both sides of a change": lambda: compare_periods(FRUIT, gone, here, 0.05),
            "too few reports on one side of a change": lambda: compare_periods(FRUIT, fewer, here, 0.05),
            "two periods before a change": lambda: compare_periods(FRUIT, gone, gone, 0.05),
        }
    )


def test_messages_of_edges(pin_messages: PinMessages, tmp_path: Path) -> None:
    """Refused before anything is read."""
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    wrong: dict[str, Any] = {"a number": 5, "another text": "ln", "texts": ["0", "1"], "of values": "log"}
    rollup = partial(deniable.rollup, config, collection="carrier", former=[])
    number = Collection("age", SquareWave.from_epsilon(0.0, 100.0, 16, 1.0))
    pin_messages(
        {what: partial(with_edges, number, edges) for what, edges in wrong.items() if what != "of values"}
        | {
            "of values": partial(rollup, edges="log"),
            "beside former files": partial(rollup, edges="log", former=[config]),
            "between steps": partial(with_edges, number, np.array([0, 10])),
        }
    )


def test_messages_of_candidates(pin_messages: PinMessages, tmp_path: Path) -> None:
    """Refused before anything is read."""
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    wrong = {"a number": 5, "none": [], "repeated ones": ["a", "a"], "a lone surrogate": ["JFK", "\ud800"]}
    pin_messages(
        {
            what: partial(deniable.decode, config, collection="destination", candidates=candidates)
            for what, candidates in wrong.items()
        }
    )
