"""Where an interrupted run is resumed: the same part of the same file, or its start."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest

from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.resume import FilePlace, ResumePoints
from deniable.deploy.produce.input.source import InputFile
from deniable.deploy.produce.input.values import one
from deniable.producers.storage.input_progress import get_progress, set_progress
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import STORE_NAME, Secret
from tests.support.messages import PinMessages

SECRET = Secret(bytes(32))
CSV = 'x,"val\nue"\n1,AA\n,UA\n2,B6\n3,"9\nE"\n4,DL\n'
FIELD = "val\nue"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "lines.csv"
    made.write_text(CSV)
    return made


def progress_of(path: Path, *, collection: str = "carrier", field: str = FIELD) -> ResumePoints:
    return ResumePoints(path.parent / "data", SECRET, collection, field, path)


@contextmanager
def opened(path: Path) -> Iterator[InputFile]:
    with path.open("rb") as stream:
        yield InputFile(path, stream.fileno(), follow=False)


def interrupt(path: Path, records: int, layout: str = "csv") -> None:
    """Leave what a run leaves that was killed once it had reported so many records, the header included."""
    progress = progress_of(path)
    with opened(path) as file, closing(Store(path.parent / "data")) as store:
        place = progress.start(file)
        for record in islice(InputBatches(layout, FIELD, None, one)._records(file, place), records):
            assert record is not None
            place.advance(b"".join(record.lines), is_reported=True)
        with store.transaction():
            set_progress(store, place.key, place.progress())


def resume(path: Path, progress: ResumePoints | None = None) -> list[str]:
    """What a run reads that begins now."""
    with opened(path) as file:
        place = (progress or progress_of(path)).find(file)
        values = []
        for batch in InputBatches("csv", FIELD, None, one).batches(file, place):
            values += [str(value) for value in batch.values]
            assert batch.progress is not None
            assert batch.progress.bytes_done == path.stat().st_size
        return values


@pytest.mark.parametrize(
    ("records", "left"),
    [(1, ["AA", "UA", "B6", "9\nE", "DL"]), (2, ["UA", "B6", "9\nE", "DL"]), (5, ["DL"]), (6, [])],
)
def test_a_run_is_resumed_behind_what_it_reported(
    path: Path, records: int, left: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message does not depend on line ends in values."""
    interrupt(path, records)
    assert resume(path) == left
    assert f" at line {records + 1}" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["AA", "", " ", '""', '"\t"'])
def test_blank_values_of_one_column_are_counted(
    tmp_path: Path, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message does not depend on whether values are blank."""
    path = tmp_path / "one.csv"
    path.write_text(f'"{FIELD}"\n' + f"{value}\n" * 6)
    interrupt(path, 4)
    assert len(resume(path)) == 3
    assert capsys.readouterr().err == "resuming at line 5\n"


def test_progress_is_kept_behind_whole_records(path: Path) -> None:
    """A record that spans lines is sent, or is not; there is no place within it."""
    with opened(path) as file:
        place = progress_of(path).start(file)
        lines = []
        for record in InputBatches("csv", FIELD, None, one)._records(file, place):
            assert record is not None
            place.advance(b"".join(record.lines), is_reported=True)
            lines.append((place.lines, place.records, place.bytes_done))
    ends = [len("".join(CSV.splitlines(keepends=True)[:n])) for n in (2, 3, 4, 5, 7, 8)]
    assert lines == list(zip((2, 3, 4, 5, 7, 8), range(1, 7), ends, strict=True))


def test_json_lines_are_resumed_too(path: Path) -> None:
    path.write_text('{"a": "x"}\n{"a": "y"}\n{"a": "z"}')
    interrupt(path, 2, "jsonl")
    with opened(path) as file:
        place = progress_of(path).find(file)
        (batch,) = InputBatches("jsonl", "a", None, one).batches(file, place)
    assert batch.values == ["z"]


def _grow(path: Path) -> None:
    with path.open("a") as stream:
        stream.write("5,UA\n")


def _change(path: Path) -> None:
    with path.open("r+") as stream:
        stream.write("y")


def _truncate(path: Path) -> None:
    with path.open("r+") as stream:
        stream.truncate(len('x,"val\nue"\n'))


def _replace(path: Path) -> None:
    path.with_suffix(".new").write_text(CSV)
    path.with_suffix(".new").rename(path)


@pytest.mark.parametrize(
    ("happens", "left", "line"),
    [
        (_grow, ["9\nE", "DL", "UA"], 5),
        (_change, ["AA", "UA", "B6", "9\nE", "DL"], 1),
        (_truncate, [], 1),
        (_replace, ["AA", "UA", "B6", "9\nE", "DL"], 1),
    ],
)
def test_only_an_unchanged_file_is_resumed(
    path: Path,
    happens: Callable[[Path], None],
    left: list[str],
    line: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt(path, 4)
    happens(path)
    assert resume(path) == left
    assert capsys.readouterr().err.endswith(f" at line {line}\n")


def test_messages(path: Path, capsys: pytest.CaptureFixture[str], pin_messages: PinMessages) -> None:
    def resumed(records: int, happens: Callable[[Path], None]) -> str:
        path.write_text(CSV)
        interrupt(path, records)
        happens(path)
        resume(path)
        return capsys.readouterr().err

    pin_messages(
        {
            "the file has grown": lambda: resumed(4, _grow),
            "all was reported": lambda: resumed(6, lambda _: None),
            "another file of this name": lambda: resumed(4, _replace),
        }
    )


def test_another_collection_field_or_secret_begins_at_line_1(path: Path) -> None:
    interrupt(path, 4)
    whole = ["AA", "UA", "B6", "9\nE", "DL"]
    assert resume(path, progress_of(path, collection="place")) == whole
    with opened(path) as file:
        assert progress_of(path, field="x").find(file).lines == 0
    other = ResumePoints(path.parent / "data", Secret(bytes(31) + b"x"), "carrier", FIELD, path)
    assert resume(path, other) == whole
    assert resume(path) == ["9\nE", "DL"]


def test_a_relative_path_is_the_same_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(path, 4)
    monkeypatch.chdir(path.parent)
    assert resume(path, ResumePoints(Path("data"), SECRET, "carrier", FIELD, Path("lines.csv"))) == [
        "9\nE",
        "DL",
    ]


def test_link_is_the_file_that_it_leads_to(path: Path) -> None:
    interrupt(path, 4)
    link = path.with_name("link.csv")
    link.symlink_to(path.name)
    assert resume(path, ResumePoints(path.parent / "data", SECRET, "carrier", FIELD, link)) == ["9\nE", "DL"]


def test_redirected_link_keeps_progress_of_each_file(path: Path) -> None:
    """As logs are rotated that have a link to the present one: both are forgotten when the run ends."""
    other, link = path.with_name("other.csv"), path.with_name("link.csv")
    other.write_text(CSV)
    link.symlink_to(path.name)
    progress = ResumePoints(path.parent / "data", SECRET, "carrier", FIELD, link)
    with opened(path) as file, opened(other) as successor:
        first = progress.start(file)
        link.unlink()
        link.symlink_to(other.name)
        second = progress.start(successor)
        assert first.key != second.key
        with closing(Store(path.parent / "data")) as store, store.transaction():
            for place in (first, second):
                set_progress(store, place.key, place.progress())
        progress.forget()
        with closing(Store(path.parent / "data")) as store:
            assert [get_progress(store, place.key) for place in (first, second)] == [None, None]


def test_forgotten_input_is_not_resumed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt(path, 4)
    progress = progress_of(path)
    with opened(path) as file:
        progress.find(file)
    progress.forget()
    capsys.readouterr()
    assert len(resume(path)) == 5
    assert capsys.readouterr().err == ""


def test_stored_progress_reveals_nothing_without_the_secret(path: Path) -> None:
    """The hash is keyed: without the secret, guesses at a short file cannot be tried."""
    interrupt(path, 4)
    with opened(path) as file, opened(path) as same:
        one, other = (
            progress_of(path).start(file),
            ResumePoints(path.parent / "data", Secret(b"x" * 32), "carrier", FIELD, path).start(same),
        )
        assert isinstance(one, FilePlace)
        assert one.progress().digest != other.progress().digest
    assert b"B6" not in (path.parent / "data" / STORE_NAME).read_bytes()
