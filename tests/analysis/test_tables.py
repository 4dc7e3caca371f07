"""Tables without a broker: from JSON lines, from a worker, and what is refused."""

import asyncio
import copy
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from aggregator.history.periods import Period
from aggregator.history.window_reader import Joined
from aggregator.records.estimate import encode_estimate
from aggregator.records.window_counts import WindowCounts
from analysis.comparison import JoinedPeriod, check_comparable, compare_periods
from analysis.errors import AnalysisError, needed
from analysis.tables.file_formats import write_table
from analysis.tables.window_table import window_table, windows_of
from deploy.query.compare import lines_of
from estimators.collection import Collection
from estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of
from tests.support.deploy.collection_texts import WHOLE

FINAL = changed(estimate_of(), final=True)
PROVISIONAL = changed(FINAL, final=False, window_start=T0 + 10, window_end=T0 + 20)
EARLY, LATE = Period(T0, T0 + 10), Period(T0 + 10, T0 + 20)


def test_json_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(b"\n".join([encode_estimate(FINAL), b"", encode_estimate(PROVISIONAL), b"{}"]) + b"\n")
    with pytest.warns(UserWarning, match="fruit: skipped 1 record, not of this version"):
        finals = deniable.read_estimates(collection="fruit", files=file)
    assert finals["frequency"].to_pylist() == FINAL.frequency
    with pytest.warns(UserWarning, match="1 record"):
        both = deniable.read_estimates(collection="fruit", files=[file], provisional=True)
    assert both["final"].to_pylist() == [True] * 3 + [False] * 3
    with pytest.warns(UserWarning, match="1 record,|the files hold windows from .* and none from"):
        none = deniable.read_estimates(collection="fruit", files=file, start=T0 + 1)
    assert (len(none), none.about["windows"]) == (0, 0)


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


def test_worker_that_has_a_first_part_alone_is_read(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [encode_estimate(changed(FINAL, parts=3)), encode_estimate(PROVISIONAL)]
    monkeypatch.setattr(Handler, "body", b'{"estimates":[' + b",".join(kept) + b"]}")
    table = deniable.read_estimates(worker=address, collection="fruit")
    assert table["low"].to_pylist() == FINAL.low


def test_period_before_what_a_worker_keeps_is_warned_of(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "body", b'{"estimates":[' + encode_estimate(FINAL) + b"]}")
    expected = "^fruit: the records that this worker keeps hold windows from .*, and none in "
    with pytest.warns(UserWarning, match=expected):
        deniable.read_estimates(worker=address, collection="fruit", end=T0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"worker": "ftp://x"}, r"^worker must be an address such as http://127.0.0.1:8321, got ftp://x$"),
        ({"worker": "http://127.0.0.1:9"}, r"^no worker answers at http://127.0.0.1:9: "),
        ({"worker": "http://127.0.0.1:9", "files": "x"}, r"^give either files or worker$"),
        ({"files": "absent"}, r"^files must be files or folders that exist, got absent$"),
        ({"files": []}, r"^files must be files or folders that exist, got none$"),
        ({"files": __file__}, r"^a file must end in .parquet, .csv or .jsonl, got .*test_tables.py$"),
        ({"files": "absent", "last": "1y"}, r"^last must be a text of a whole number .* got '1y'$"),
    ],
)
def test_unfit_source_is_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(AnalysisError, match=expected):
        deniable.read_estimates(collection="fruit", **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"collection": 5}, r"^collection must be the name of a collection, such as 'plan', got 5$"),
        ({"last": 30}, r"^last must be a text of a whole number from 1 to 999999 .*, got 30$"),
        ({"start": [1]}, r"^start must be a time: ISO 8601, a datetime, a date, or unix seconds, got \[1\]$"),
        ({"start": True}, r"^start must be a time: .*, got True$"),
        ({"files": 5}, r"^files must be the path of a file or folder, or a list of such paths, got 5$"),
        ({"files": ["x", 5]}, r"^files must be the path .*, got 5$"),
        ({"files": None, "worker": 5}, r"^worker must be an address such as http://127.0.0.1:8321, got 5$"),
        ({"config": 5}, r"^config must be the path of a collection file, or a Configuration, got 5$"),
    ],
)
def test_argument_of_another_type_is_named(options: dict[str, Any], expected: str) -> None:
    """Else it fails somewhere inside, as AttributeError or TypeError."""
    with pytest.raises(AnalysisError, match=expected):
        deniable.read_estimates(**{"collection": "fruit", "files": "absent", **options})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rate": "x"}, r"^rate must be a number in \[1e-09, 0.5\], got 'x'$"),
        ({"rate": 0.6}, r"^rate must be in \[1e-09, 0.5\], got 0.6$"),
        ({"rate": 1e-10}, r"^rate must be in \[1e-09, 0.5\], got 1e-10$"),
        ({"rate": float("nan")}, r"^rate must be in \[1e-09, 0.5\], got nan$"),
        ({"first": 5}, r"^first must be two times, or a text such as .*, got 5$"),
        ({"second": (T0,)}, r"^second must be two times, .*, got 1 items$"),
        ({"collection": 5}, r"^collection must be the name"),
    ],
)
def test_argument_of_a_comparison_of_another_type_is_named(
    options: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    given = {"collection": "carrier", "first": "2026-01", "second": "2026-02", "files": tmp_path, **options}
    with pytest.raises(AnalysisError, match=expected):
        deniable.compare(config, **given)


@pytest.mark.parametrize("candidates", [[1, 2], "JFK", 5, [], ["a", "a"]])
def test_candidates_must_be_distinct_strings(candidates: Any, tmp_path: Path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    with pytest.raises(
        AnalysisError, match=r"^candidates must be a list of distinct strings, at least one, got"
    ):
        deniable.decode(config, collection="destination", candidates=candidates)


def test_candidates_that_no_text_has_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(WHOLE)
    with pytest.raises(
        AnalysisError, match=r"^candidates must be Unicode texts, got '.ud800': a lone surrogate$"
    ):
        deniable.decode(config, collection="destination", candidates=["JFK", "\ud800"])


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (deniable.read_estimates, ", or files= or worker="),
        (deniable.read_windows, ", or files="),
        (deniable.rollup, ""),
        (deniable.grow, ""),
    ],
)
def test_absent_collection_file_is_reported_in_terms_of_functions(
    call: Any, instead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in those of the command line, such as --config."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(deniable.CollectionFileError) as raised:
        call(collection="fruit")
    assert str(raised.value) == (
        f"there is no deniable.yaml in this folder: give config=, the path of the collection file{instead}"
    )


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
        with pytest.warns(UserWarning, match="^fruits: the files hold nothing of it; there are: fruit$"):
            assert len(deniable.read_estimates(collection="fruits", files=each)) == 0


def test_address_of_another_server_is_refused(address: str) -> None:
    with pytest.raises(
        AnalysisError, match=r"did not answer with estimates: is http://.* a worker's page\?$"
    ):
        deniable.read_estimates(worker=address, collection="fruit")


def test_missing_library_is_named_with_its_remedy() -> None:
    with pytest.raises(AnalysisError, match=r"^to_x needs absent_library: pip install absent$"):
        needed("absent_library.part", "to_x", "pip install absent")


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
        with pytest.raises(
            AnalysisError, match=r"cohorts of \d+ counts, each once: the table lacks rows, repea"
        ):
            windows_of(wrong, table if wrong is other else table.take([0, *range(len(table))]))


def joined(counts: list[int]) -> Joined:
    array = np.array([counts], np.int64)
    return Joined(WindowCounts(array, array.sum(axis=1), 1, 0), {T0: sum(counts)}, [], {}, 0)


def test_comparison_is_printed_with_shares_within_their_range() -> None:
    """Noise takes shares below 0 and above 1; the record and the differences keep what it did."""
    sides = (JoinedPeriod(EARLY, joined([9000, 30, 10, 10])), JoinedPeriod(LATE, joined([10, 9000, 40, 10])))
    record = compare_periods(FRUIT, *sides, 0.05)
    assert min(record.first_share) < 0
    assert max(record.first_share) > 1
    rows = {line.split()[0]: line.split()[1:4] for line in lines_of(record)[4:]}
    assert rows["apple"][:2] == ["1.000000", "0.000000"]
    assert rows["fig"][:2] == ["0.000000", "1.000000"]
    assert rows["apple"][2] == f"{record.difference[record.values.index('apple')]:+.6f}"


def test_comparison_is_printed_by_falling_evidence() -> None:
    sides = (
        JoinedPeriod(EARLY, joined([5000, 3000, 2000, 500])),
        JoinedPeriod(LATE, joined([4000, 4000, 2000, 500])),
    )
    record = compare_periods(FRUIT, *sides, 0.05)
    lines = lines_of(record)
    assert lines[0] == "2026-01-01T00:00:00Z/2026-01-01T00:00:10Z: 10,500 reports in 1 window"
    assert lines[2:5] == [
        "2 of 4 shares differ (*); of those, at most 5 % are expected to be false",
        "* allows for the randomizers' noise alone: where other people report in each period, shares may",
        "differ although nobody changed",
    ]
    assert {line.split()[0] for line in lines[6:8]} == {"apple", "fig"}
    assert [line.endswith("*") for line in lines[6:]] == [True, True, False, False]
    assert record.table()["value"].to_pylist() == ["apple", "fig", "kiwi", "(other)"]
    about = json.loads(json.dumps(record.table().about))
    assert about["reports"] == [10_500, 10_500]
    assert [(each["windows"], each["expected"]) for each in about["coverage"]] == [(1, 1), (1, 1)]


def test_comparison_that_cannot_be_honest_is_refused() -> None:
    with pytest.raises(AnalysisError, match=r"^the periods must not overlap, since no report may be in both"):
        check_comparable(FRUIT, EARLY, Period(T0 + 9, T0 + 20))
    check_comparable(FRUIT, EARLY, LATE)
    number = Collection(name="age", mechanism=SquareWave.from_epsilon(0.0, 100.0, 16, 1.0), window_seconds=10)
    with pytest.raises(
        AnalysisError, match=r"^compare needs shares of values, and age is of numbers: compare"
    ):
        check_comparable(number, EARLY, LATE)
    few = JoinedPeriod(EARLY, joined([1, 1, 0, 0]))
    with pytest.raises(
        AnalysisError, match=r"^1 window of fruit was joined in .*, with 2 reports, fewer than"
    ):
        compare_periods(FRUIT, few, few, 0.05)


@pytest.mark.parametrize("is_former_first", [True, False])
def test_periods_on_both_sides_of_a_change_are_not_compared(is_former_first: bool) -> None:
    """No collection file has both; a side of which some windows are there keeps the other remedy."""
    here = JoinedPeriod(LATE, joined([5000, 3000, 2000, 500]))
    gone = JoinedPeriod(EARLY, replace(joined([0, 0, 0, 0]), reports={}, others={0xAB: 12}))
    few = JoinedPeriod(EARLY, replace(joined([1, 1, 0, 0]), others={0xAB: 12}))
    sides = (gone, here) if is_former_first else (here, gone)
    with pytest.raises(AnalysisError) as raised:
        compare_periods(FRUIT, *sides, 0.05)
    assert str(raised.value) == (
        f"{EARLY} holds windows of fruit with other parameters only, and {LATE} some with these: periods on "
        "both sides of a change of parameters cannot be compared; see the roll-up of each under its "
        "collection file, or of both periods with deniable rollup --former FILE"
    )
    with pytest.raises(AnalysisError, match=r"or a period with more windows of this one$"):
        compare_periods(FRUIT, few, here, 0.05)
    with pytest.raises(AnalysisError, match=r"give the collection file that they were counted under"):
        compare_periods(FRUIT, gone, gone, 0.05)


def test_event_loop_of_the_caller_is_not_needed(tmp_path: Path) -> None:
    file = tmp_path / "watched.jsonl"
    file.write_bytes(encode_estimate(FINAL))

    async def read() -> int:
        return len(deniable.read_estimates(collection="fruit", files=file))

    assert asyncio.run(read()) == 3
