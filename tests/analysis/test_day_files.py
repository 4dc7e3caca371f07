"""Exported files hold each window once, its newest revision, whatever is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

from aggregator.history.periods import Period
from aggregator.records.estimate import EstimateRecord, encode_estimate
from analysis.errors import AnalysisError
from analysis.export.day_files import DayFiles, locked
from analysis.export.layout import ExportFile, file_named
from analysis.sources.files import files_of, read_files
from analysis.sources.newest import NewestEstimates
from analysis.tables.estimate_table import estimate_schema
from analysis.tables.export_state import state_folder
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.paths import REPOSITORY

WINDOWS = 2000
KILLS, MERGES = 12, 50
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
    return DayFiles(output, FRUIT, "estimates", ending, estimate_schema())


def exported(output: Path) -> Any:
    """All rows of all files, each once as it is there; no reader's choice of a newest revision."""
    import pyarrow as pa

    from analysis.tables.file_formats import read_table

    found = [
        read_table(path, estimate_schema(), {"collection": "fruit"}) for path in files_of(output, "fruit")
    ]
    return pa.concat_tables([estimate_schema().empty_table(), *found])


def revisions(output: Path) -> Counter[tuple[int, int]]:
    """Number of rows of each window and revision."""
    table = exported(output)
    starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
    return Counter(zip(starts, table["revision"].to_pylist(), strict=True))


def check(output: Path, records: list[EstimateRecord]) -> None:
    rows = len(FINAL.values) + 1
    assert revisions(output) == {(each.window_start, each.revision): rows for each in records}


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
    assert files.files == {*files_of(tmp_path / "out", "fruit")}


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    with locked(tmp_path / "out"):
        files = day_files(tmp_path / "out")
        files.merge(table_of(windows(range(30))))
        before = {path: path.stat().st_ino for path in files_of(tmp_path / "out", "fruit")}
        files.merge(table_of(windows(range(30))))
    assert {path: path.stat().st_ino for path in files_of(tmp_path / "out", "fruit")} == before
    assert (len(files.windows), files.files) == (30, before.keys())


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


def test_span_of_the_first_files_is_kept(tmp_path: Path) -> None:
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
        with pytest.raises(AnalysisError, match=r"must have files of one span, got \[600, "):
            day_files(output)


def test_name_of_a_file_can_be_taken_apart() -> None:
    file = ExportFile("windows", "00000000000000ab", T0, 86_400, "csv")
    assert str(file) == "windows-00000000000000ab-20260101T000000Z-86400s.csv"
    assert file_named(str(file)) == file
    assert file_named("notes.csv") is None


def test_folder_takes_one_export_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "out"),
        pytest.raises(AnalysisError, match=r"^another process exports to .*out: wait for its end, or give"),
        locked(tmp_path / "out"),
    ):
        pass
    with locked(tmp_path / "out"):
        pass


def test_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    written = locked(tmp_path / "file")
    with (
        pytest.raises(AnalysisError, match=r"file cannot be written: File exists; give another folder$"),
        written,
    ):
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
    found, others = read_files(files, estimate_schema(), "fruit", None, Period(0, 1 << 40))
    assert len(found) == 10 * (len(FINAL.values) + 1)
    assert set(found["revision"].to_pylist()) == {2}
    assert others == {}
    found, others = read_files(files, estimate_schema(), "fruit", "0" * 16, Period(0, 1 << 40))
    assert (len(found), {each: len(starts) for each, starts in others.items()}) == (
        0,
        {FINAL.fingerprint: 10},
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n", r"must have the columns of deniable export, and lacks collection, window_start,"),
        ("", r"cannot be read as csv"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(AnalysisError, match=expected):
        read_files(files_of(tmp_path, "fruit"), estimate_schema(), "fruit", None, Period(0, 1 << 40))


@pytest.mark.parametrize("kept", [0, 100, -100])
def test_damaged_parquet_is_refused_with_a_remedy(tmp_path: Path, kept: int) -> None:
    """Empty, cut early, and cut in its footer; the file that is damaged is named."""
    with locked(tmp_path / "out"):
        day_files(tmp_path / "out").merge(table_of(windows(range(3))))
    [path] = files_of(tmp_path / "out", "fruit")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(AnalysisError) as found:
        read_files([path], estimate_schema(), "fruit", None, Period(0, 1 << 40))
    assert str(found.value).startswith(f"{path} cannot be read as parquet: ")
    assert "if it is damaged, copy it again, or delete it and write its windows again" in str(found.value)


def test_place_without_files_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"must hold \.parquet, \.csv or \.jsonl files, and holds none$"):
        files_of(tmp_path, "fruit")
    with pytest.raises(AnalysisError, match=r"^files must be files or folders that exist, got .*absent$"):
        files_of(tmp_path / "absent", "fruit")
    with locked(tmp_path / "out"):
        assert files_of(tmp_path / "out", "fruit") == [], "nothing is final yet"


EXPORT = """
import sys
from pathlib import Path
from analysis.export.day_files import locked
from tests.analysis.test_day_files import MERGES, WINDOWS, day_files, table_of, windows

output, revision = Path(sys.argv[1]), int(sys.argv[2])
with locked(output):
    files = day_files(output)
    print("begins", flush=True)
    for first in range(0, WINDOWS, WINDOWS // MERGES):
        files.merge(table_of(windows(range(first, first + WINDOWS // MERGES), revision)))
        print("merged", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet"])
def test_kills_leave_whole_files_with_each_window_once(tmp_path: Path, ending: str) -> None:
    """A process that exports is killed at random moments, and begins anew with newer revisions.

    Catches files written in place (half a file is left) and files added beside others (a window twice).
    """
    output, chance = tmp_path / "out", random.Random(3)
    rows = len(FINAL.values) + 1
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    }
    for number in range(1, KILLS + 1):
        command = [sys.executable, "-c", EXPORT, str(output), str(number)]
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
        day_files(output).merge(table_of(windows(range(WINDOWS), KILLS + 1)))
    check(output, windows(range(WINDOWS), KILLS + 1))
    assert list(state_folder(output).glob("*.unfinished")) == []
