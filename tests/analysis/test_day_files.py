"""Exported files hold each window once, its newest revision, whatever is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.messages import PinMessages

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.errors import AnalysisError
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.export.layout import ExportFile, file_named
from deniable.analysis.export.local_folder import LocalFolder, locked
from deniable.analysis.sources.files import files_of, read_files
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.tables.estimate_table import estimate_schema
from deniable.analysis.tables.export_state import state_folder
from deniable.analysis.tables.file_formats import plain_schema, read_table, write_table
from deniable.analysis.tables.window_table import window_schema, window_table
from deniable.deploy.query.export import lost_sentence
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.paths import REPOSITORY

WINDOWS = 2000
MERGES = 50
FINAL = changed(estimate_of(), final=True)


def windows(numbers: range, revision: int = 1) -> list[EstimateRecord]:
    return [
        changed(
            FINAL, window_start=T0 + 10 * i, window_end=T0 + 10 * i + 10, revision=revision, reports=revision
        )
        for i in numbers
    ]


def table_of(records: list[EstimateRecord]) -> Any:
    newest = NewestEstimates()
    for each in records:
        newest.add(encode_estimate(each))
    return newest.table(other=True)


def day_files(output: Path, ending: str = "parquet") -> DayFiles:
    return DayFiles(LocalFolder(output), FRUIT, "estimates", ending, estimate_schema())


def exported(output: Path) -> Any:
    """All rows of all files, each once as it is there; no reader's choice of a newest revision."""
    import pyarrow as pa

    from deniable.analysis.tables.file_formats import read_table

    found = [
        read_table(path, estimate_schema(), {"collection": "fruit"}) for path in files_of(output, "fruit")
    ]
    return pa.concat_tables([estimate_schema().empty_table(), *found])


def revisions(output: Path) -> Counter[tuple[int, int]]:
    """Number of rows of each window and revision."""
    table = exported(output)
    starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
    return Counter(zip(starts, table["revision"].to_pylist(), strict=True))


def names_of(output: Path) -> list[str]:
    return [path.relative_to(output).as_posix() for path in files_of(output, "fruit")]


def check(output: Path, records: list[EstimateRecord]) -> None:
    rows = len(FINAL.values) + 1
    assert revisions(output) == {(each.window_start, each.revision): rows for each in records}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_newer_revisions_replace_older_ones(tmp_path: Path, ending: str) -> None:
    with locked(tmp_path / "out"):
        files = day_files(tmp_path / "out", ending)
        files.merge(table_of(windows(range(30))))
        files.merge(table_of(windows(range(10, 20), revision=3)))
        files.merge(table_of(windows(range(5, 15), revision=2)))
    records = [
        *windows(range(5)),
        *windows(range(5, 10), 2),
        *windows(range(10, 20), 3),
        *windows(range(20, 30)),
    ]
    check(tmp_path / "out", records)
    assert len(files.windows) == 30  # 45 revisions were written
    assert files.files == {*names_of(tmp_path / "out")}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_withdrawn_windows_are_removed_unless_the_file_has_a_newer_revision(
    tmp_path: Path, ending: str
) -> None:
    output = tmp_path / "out"
    with locked(output):
        files = day_files(output, ending)
        files.merge(table_of(windows(range(3), revision=4)))
        gone = {(FINAL.fingerprint, (T0 + 10 * i) * 1_000_000): (3 + i, True) for i in range(3)}
        files.merge(table_of([]), gone)
        check(output, windows(range(1), 4))
        assert (len(files.windows), len(files.withdrawn), len(files.files)) == (1, 2, 1)
        files.merge(table_of([]), {(FINAL.fingerprint, T0 * 1_000_000): (5, True)})
        files.merge(table_of([]), gone)
    assert files_of(output, "fruit") == []
    assert (files.windows, len(files.withdrawn), files.files) == (set(), 3, set())


def test_newer_provisional_estimate_does_not_hide_the_final_one(tmp_path: Path) -> None:
    """Files of other programs may hold both; in any order, in one file or in two."""
    newer = changed(FINAL, final=False, revision=9)
    for number, records in enumerate(([FINAL, newer], [newer, FINAL])):
        for place, each in enumerate(records):
            write_table(table_of([each]), tmp_path / f"{number}-{place}.csv", "csv")
        files = [tmp_path / f"{number}-{place}.csv" for place in range(2)]
        table = deniable.read_estimates(collection="fruit", files=files)
        assert set(table["final"].to_pylist()) == {True}
        assert len(table) == len(FINAL.values)
        newest = deniable.read_estimates(collection="fruit", files=files, provisional=True)
        assert set(newest["revision"].to_pylist()) == {9}


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    with locked(tmp_path / "out"):
        files = day_files(tmp_path / "out")
        files.merge(table_of(windows(range(30))))
        before = {path: path.stat().st_ino for path in files_of(tmp_path / "out", "fruit")}
        files.merge(table_of(windows(range(30))))
    assert {path: path.stat().st_ino for path in files_of(tmp_path / "out", "fruit")} == before
    assert (len(files.windows), files.files) == (30, {*names_of(tmp_path / "out")})


def test_files_are_partitioned_by_collection_and_day(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with locked(output):
        day_files(output).merge(table_of(windows(range(8640 - 5, 8640 + 5))))
    names = sorted(str(path.relative_to(output).parent) for path in files_of(output, "fruit"))
    assert names == ["collection=fruit/day=2026-01-01", "collection=fruit/day=2026-01-02"]
    spans = [file_named(path.name) for path in files_of(output, "fruit")]
    assert all(
        each is not None and 86_400 % each.seconds == 0 and each.start % each.seconds == 0 for each in spans
    )


def test_span_of_the_first_files_is_kept(pin_messages: PinMessages, tmp_path: Path) -> None:
    """A longer list of candidates does not move windows to other files."""
    output = tmp_path / "out"
    with locked(output):
        day_files(output).merge(table_of(windows(range(30))))
        (path,) = files_of(output, "fruit")
        part = file_named(path.name)
        assert part is not None
        other = part._replace(seconds=600, start=T0)
        path.rename(path.with_name(str(other)))
        files = day_files(output)
        assert files.seconds == 600
        path.with_name(str(part)).write_bytes(path.with_name(str(other)).read_bytes())
        pin_messages({"files of two spans": lambda: day_files(output)})


def test_name_of_a_file_can_be_taken_apart() -> None:
    file = ExportFile("windows", "00000000000000ab", T0, 86_400, "csv")
    assert str(file) == "windows-00000000000000ab-20260101T000000Z-86400s.csv"
    assert file_named(str(file)) == file
    assert file_named("notes.csv") is None


def test_export_in_progress_has_no_files(tmp_path: Path) -> None:
    with locked(tmp_path / "out"):
        assert files_of(tmp_path / "out", "fruit") == [], "nothing is final yet"


def test_folder_takes_one_export_at_a_time(pin_messages: PinMessages, tmp_path: Path) -> None:
    with locked(tmp_path / "out"):
        pin_messages({"another export in progress": lambda: locked(tmp_path / "out").__enter__()})
    with locked(tmp_path / "out"):
        pass


def test_progress_is_kept_and_damage_to_it_costs_only_time(tmp_path: Path) -> None:
    with locked(tmp_path / "out"):
        files = day_files(tmp_path / "out")
        assert files.progress() == 0
        files.keep_progress(17)
        assert day_files(tmp_path / "out").progress() == 17
        next(state_folder(tmp_path / "out").glob("progress-*")).write_text("{")
        assert files.progress() == 0


def test_files_of_two_exports_give_each_window_once(tmp_path: Path) -> None:
    for name, revision in (("a", 2), ("b", 1), ("c", 2)):
        with locked(tmp_path / name):
            day_files(tmp_path / name).merge(table_of(windows(range(10), revision)))
    files = [path for name in "abc" for path in files_of(tmp_path / name, "fruit")]
    found, others, held = read_files(files, estimate_schema(), "fruit", None, Period(0, 1 << 40))
    assert held == (T0, T0 + 100, 10)
    assert len(found) == 10 * (len(FINAL.values) + 1)
    assert set(found["revision"].to_pylist()) == {2}
    assert others == {}
    found, others, held = read_files(files, estimate_schema(), "fruit", "0" * 16, Period(0, 1 << 40))
    assert held is None
    assert (len(found), {each: len(starts) for each, starts in others.items()}) == (
        0,
        {FINAL.fingerprint: 10},
    )


@pytest.mark.parametrize("kept", [100, -100])
def test_damaged_parquet_is_refused_with_a_remedy(tmp_path: Path, kept: int) -> None:
    """Cut early, and cut in its footer; the file that is damaged is named."""
    with locked(tmp_path / "out"):
        day_files(tmp_path / "out").merge(table_of(windows(range(3))))
    [path] = files_of(tmp_path / "out", "fruit")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(AnalysisError, match=f"^{path} "):
        read_files([path], estimate_schema(), "fruit", None, Period(0, 1 << 40))


EXPORT = """
import sys
from pathlib import Path
from deniable.analysis.export.local_folder import locked
from tests.analysis.test_day_files import MERGES, WINDOWS, day_files, table_of, windows

output, revision = Path(sys.argv[1]), int(sys.argv[2])
with locked(output):
    files = day_files(output, sys.argv[3])
    print("begins", flush=True)
    for first in range(0, WINDOWS, WINDOWS // MERGES):
        files.merge(table_of(windows(range(first, first + WINDOWS // MERGES), revision)))
        print("merged", flush=True)
"""


@pytest.mark.all
@pytest.mark.parametrize(
    ("ending", "kills"), [("parquet", 3), pytest.param("csv", 3, marks=pytest.mark.nightly)]
)
def test_kills_leave_whole_files_with_each_window_once(tmp_path: Path, ending: str, kills: int) -> None:
    """A process that exports is killed at random moments, and begins anew with newer revisions.

    Catches files written in place (half a file is left) and files added beside others (a window twice).
    """
    output, chance = tmp_path / "out", random.Random(3)
    rows = len(FINAL.values) + 1
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    }
    for number in range(1, kills + 1):
        command = [sys.executable, "-c", EXPORT, str(output), str(number), ending]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begins\n"
            for _ in range(chance.randrange(MERGES)):
                process.stdout.readline()
            time.sleep(chance.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
        found = revisions(output)
        assert set(found.values()) <= {rows}, "a window is in the files half or twice"
        assert len({start for start, _ in found}) == len(found), "a window is there in two revisions"
    assert found, "all were killed before their first merge"
    with locked(output):
        day_files(output, ending).merge(table_of(windows(range(WINDOWS), kills + 1)))
    check(output, windows(range(WINDOWS), kills + 1))
    assert list(state_folder(output).glob("*.unfinished")) == []


def test_files_that_are_gone_are_exported_again(tmp_path: Path) -> None:
    """A kill before they are written again loses nothing: the progress is 0 until then."""
    output = tmp_path / "out"
    with locked(output):
        files = day_files(output)
        files.merge(table_of(windows(range(2))))
        files.keep_progress(17)
        assert (day_files(output).forget_if_lost(), day_files(output).progress()) == ([], 17)
        (name,) = names_of(output)
        (output / name).unlink()
        assert (day_files(output).forget_if_lost(), day_files(output).progress()) == ([name], 0)


def test_file_that_goes_during_a_run_ends_it(pin_messages: PinMessages, tmp_path: Path) -> None:
    """Else it would come back with new windows alone, and nothing would say what it has lost."""
    output = tmp_path / "out"
    with locked(output):
        files = day_files(output)
        files.merge(table_of(windows(range(2))))
        files.keep_progress(17)
        (name,) = names_of(output)
        (output / name).unlink()
        pin_messages({"a file deleted meanwhile": lambda: files.merge(table_of(windows(range(2, 3))))})
        assert day_files(output).forget_if_lost() == [name]


def test_file_without_rows_is_not_missed(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with locked(output):
        files = day_files(output)
        files.merge(table_of(windows(range(1))))
        files.merge(table_of([]), {(FINAL.fingerprint, T0 * 1_000_000): (5, True)})
        files.keep_progress(17)
        assert (files_of(output, "fruit"), day_files(output).forget_if_lost()) == ([], [])


@pytest.mark.slow
def test_damaged_page_is_never_read(tmp_path: Path) -> None:
    """One bit of each page's data in turn: what is before the last column's end is pages and their heads."""
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    write_table(table_of(windows(range(40))), path, "parquet")
    whole = path.read_bytes()
    expected = read_table(path, estimate_schema(), {})
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    differing = []
    for place in range(4, footer, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        try:
            found = read_table(path, estimate_schema(), {}, bytes(damaged))
        except AnalysisError as error:
            assert str(error).startswith(f"{path} ")  # noqa: PT017 - a damaged head may be harmless
        else:
            if not found.equals(expected):
                differing.append(place)
    assert differing == []
    pyarrow.parquet.write_table(expected.cast(plain_schema(expected.schema)), path)  # without checksums
    assert read_table(path, estimate_schema(), {}).equals(expected)


def test_damaged_counts_of_csv_are_named(pin_messages: PinMessages, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    counts = WindowCounts(np.array([[60, 40, 3, 2]]), np.array([105]), 1, 0)
    write_table(window_table(FRUIT, {T0: counts}), path, "csv")
    assert read_table(path, window_schema(), {})["counts"].to_pylist() == [[60, 40, 3, 2]]
    text = path.read_text()

    def read(damage: str) -> object:
        path.write_text(text.replace("[60,40,3,2]", damage))
        return read_table(path, window_schema(), {})

    pin_messages({f"counts {each}": partial(read, each) for each in ("[60,40,3,x]", "[60,4")})


@pytest.mark.slow
def test_rows_of_csv_may_be_of_any_length(tmp_path: Path) -> None:
    """A block of a MiB is what the reader of CSV takes unless it is told otherwise."""
    import pyarrow as pa

    path = tmp_path / "a.csv"
    few = WindowCounts(np.array([[60, 40, 3, 2]]), np.array([105]), 1, 0)
    expected = [[*range(600_000)]] * 2
    table = window_table(FRUIT, {T0: few, T0 + 10: few})
    table = table.set_column(table.column_names.index("counts"), "counts", pa.array(expected))
    write_table(table, path, "csv")
    assert path.stat().st_size > 8_000_000
    assert read_table(path, window_schema(), {})["counts"].to_pylist() == expected
    content = path.read_bytes()
    path.unlink()
    assert read_table(path, window_schema(), {}, content)["counts"].to_pylist() == expected


def test_missing_figures_of_csv_are_named(pin_messages: PinMessages, tmp_path: Path) -> None:
    import pyarrow as pa

    table = table_of(windows(range(1)))

    def read(column: str) -> object:
        empty = pa.nulls(len(table), table.schema.field(column).type)
        path = tmp_path / "a.csv"
        write_table(table.set_column(table.column_names.index(column), column, empty), path, "csv")
        return read_table(path, estimate_schema(), {})

    pin_messages({f"no {each}": partial(read, each) for each in ("window_start", "final", "revision")})


def test_full_disk_is_named_with_the_file(
    pin_messages: PinMessages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "Error writing bytes to file")

    with locked(tmp_path / "out"):
        files = day_files(tmp_path / "out")
        files.merge(table_of(windows(range(1))))
        monkeypatch.setattr("deniable.analysis.export.local_folder.write_table", full)
        pin_messages({"a full disk": lambda: files.merge(table_of(windows(range(2))))})
    check(tmp_path / "out", windows(range(1)))


def test_lines_below_the_folder_of_another_collection_are_read(tmp_path: Path) -> None:
    """JSON lines name their collection, and so does a CSV with such a column, as from the page."""
    folder = tmp_path / "collection=other"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(encode_estimate(FINAL))
    write_table(table_of(windows(range(1, 2))), folder / "b.csv", "csv")
    for name in ("a.jsonl", "b.csv"):
        assert len(deniable.read_estimates(collection="fruit", files=folder / name)) == len(FINAL.values)


def test_innermost_folder_says_the_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path may be relative to the day's folder, and above an export there may be another `collection=`."""
    output = tmp_path / "collection=other" / "out"
    with locked(output):
        day_files(output).merge(table_of(windows(range(2))))
    rows = len(deniable.read_estimates(collection="fruit", files=output))
    assert rows == 2 * len(FINAL.values)
    (name,) = names_of(output)
    monkeypatch.chdir((output / name).parent)
    for files in (".", Path(name).name):
        assert len(deniable.read_estimates(collection="fruit", files=files)) == rows
    copy = tmp_path / "copy.parquet"
    copy.write_bytes((output / name).read_bytes())
    with pytest.raises(AnalysisError, match=f"^{copy} "):
        deniable.read_estimates(collection="fruit", files=copy)


def test_messages(pin_messages: PinMessages, tmp_path: Path) -> None:
    output, period = tmp_path / "out", Period(0, 1 << 40)
    for name, content in {
        "file": "",
        "other.csv": "a,b\n1,2\n",
        "empty.csv": "",
        "empty.parquet": "",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "empty").mkdir()
    with locked(output):
        day_files(output).merge(table_of(windows(range(1))))
        (path,) = files_of(output, "fruit")
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())

    def read(name: str) -> object:
        return read_files([tmp_path / name], estimate_schema(), "fruit", None, period)

    def lock() -> None:
        with locked(tmp_path / "file"):
            pass

    pin_messages(
        {
            "a folder that is a file": lock,
            "a lost file": lambda: lost_sentence("fruit", ["a"]),
            "lost files": lambda: lost_sentence("fruit", ["a", "b"]),
            "a lost file, beside a period": lambda: lost_sentence("fruit", ["a"], is_bounded=True),
            "a CSV of something else": lambda: read("other.csv"),
            "an empty CSV": lambda: read("empty.csv"),
            "an empty parquet file": lambda: read("empty.parquet"),
            "files of another format": lambda: day_files(output, "csv"),
            "no files": lambda: files_of(tmp_path / "empty", "fruit"),
            "an absent file": lambda: files_of(tmp_path / "absent", "fruit"),
            "files of a store": lambda: files_of("s3://exports/fruit", "fruit"),
            "a file without its folder": lambda: deniable.read_estimates(collection="fruit", files=copy),
        }
    )
