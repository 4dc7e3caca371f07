"""Lines that are too long, or whose end has not come: none stops a run, fills memory, or is taken twice."""

import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from deploy.produce.input import csv_records
from deploy.produce.input import lines as input_lines
from deploy.produce.input.batches import InputBatch, InputBatches
from deploy.produce.input.lines import LONGEST_LINE, TOO_LONG
from deploy.produce.input.resume import Place, ResumePoints
from deploy.produce.input.source import CHUNK_BYTES, FeedError, InputFile
from deploy.produce.input.values import text
from producers.randomization.secret import Secret
from producers.storage.input_progress import InputProgress, set_progress
from producers.storage.store import Store
from tests.support.deploy.input_fakes import Pieces

CSV, JSON = "csv", "jsonl"
LAYOUTS = [CSV, JSON]


def feed_of(layout: str, *, strict: bool = False) -> InputBatches:
    return InputBatches(layout, "v", None, text, strict)


def written(layout: str, *values: str) -> bytes:
    """Lines that hold these values; of CSV the second column, so that a line may lack it."""
    if layout == CSV:
        return "".join(f"1,{value}\n" for value in values).encode()
    return "".join(f'{{"v": "{value}"}}\n' for value in values).encode()


def head(layout: str) -> bytes:
    return b"x,v\n" if layout == CSV else b'{"v": "first"}\n'


def values_of(batches: list[InputBatch]) -> list[object]:
    return [value for batch in batches for value in batch.values if value != "first"]


def read(feed: InputBatches, data: bytes) -> list[object]:
    pieces = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
    return values_of(list(feed.batches(Pieces(pieces), Place())))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_longest_line_is_taken_and_a_longer_one_skipped(
    layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    longest = "x" * (LONGEST_LINE - len(written(layout, "")))
    for end in (b"\n", b""):
        feed = feed_of(layout)
        data = head(layout) + written(layout, "AA", longest, longest + "y", "B6", longest)
        assert read(feed, data.removesuffix(b"\n") + end) == ["AA", longest, "B6", longest]
        assert feed.skipped == 1
        assert capsys.readouterr().err == f"line 4 skipped: it has more than {LONGEST_LINE} bytes\n"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_overlong_last_line_is_bad_with_or_without_newline(
    layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for end in (b"\n", b""):
        feed = feed_of(layout)
        assert read(feed, head(layout) + written(layout, "AA") + bytes(3 * LONGEST_LINE) + end) == ["AA"]
        assert capsys.readouterr().err == f"line 3 skipped: {TOO_LONG}\n"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_long_line_never_fills_the_memory(layout: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield head(layout)
        for _ in range(1024):
            yield bytes(CHUNK_BYTES)
        yield b"\n" + written(layout, "AA")

    tracemalloc.start()
    try:
        batches = list(feed_of(layout).batches(Pieces(pieces()), Place()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values_of(batches) == ["AA"]
    assert peak < 8 * LONGEST_LINE


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_strict_feed_stops_in_an_endless_line(layout: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield head(layout)
        while True:
            yield bytes(CHUNK_BYTES)

    with pytest.raises(FeedError) as caught:
        list(feed_of(layout, strict=True).batches(Pieces(pieces()), Place()))
    assert str(caught.value) == f"line 2 of the input: {TOO_LONG}; the lines before it were processed"


def test_an_endless_header_is_refused() -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield bytes(CHUNK_BYTES)

    with pytest.raises(FeedError) as caught:
        list(feed_of(CSV).batches(Pieces(pieces()), Place()))
    assert str(caught.value) == f"the first line of the input must name the columns: {TOO_LONG}"


@pytest.mark.parametrize(
    "follows",
    [
        [b'2","\n'] * 500,  # many quoted fields, each of which ends in the line behind that where it begins
        [b"2,B6\n"] * 500,
        [b"2," + b"x" * 3_000 + b"\n"],
        [b"2,B6\n", b"2," + b"x" * 3_000 + b"\n"],
    ],
)
def test_unclosed_quote_skips_only_its_line(
    follows: list[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However the record goes on; what it would have taken with it are lines like others."""
    for module in (input_lines, csv_records):
        monkeypatch.setattr(module, "LONGEST_LINE", 1_000)
    data = head(CSV) + written(CSV, "AA") + b'1,"C\n' + b"".join(follows) + written(CSV, "9E")
    found = read(feed_of(CSV), data)
    assert (found[0], found[-1]) == ("AA", "9E")
    assert found.count("B6") == follows.count(b"2,B6\n")
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"line 3 skipped: {csv_records.TOO_LONG_RECORD}"


def test_multiline_record_has_the_limit_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (input_lines, csv_records):
        monkeypatch.setattr(module, "LONGEST_LINE", 1_000)
    longest = "x\n" * ((1_000 - len('1,""\n')) // 2)
    feed = feed_of(CSV)
    assert read(feed, head(CSV) + written(CSV, f'"{longest}"', f'"{longest}xx"', "B6")) == [longest, "B6"]


SECRET = Secret(bytes(32))


class Resuming:
    """Runs on one file, each of which may be killed once a batch was stored."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.path = folder / "lines"
        self.layout = layout
        self.values: list[object] = []
        self._data_dir = folder / "data"

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as stream:
            stream.write(data)

    @contextmanager
    def run(self) -> Iterator[Iterator[InputBatch]]:
        """Batches; each that is taken is stored with its progress."""
        progress = ResumePoints(self._data_dir, SECRET, "carrier", "v", self.path)
        with self.path.open("rb") as stream:
            file = InputFile(self.path, stream.fileno(), follow=False)
            place = progress.find(file)
            yield self._stored(feed_of(self.layout).batches(file, place), place.key)

    def _stored(self, batches: Iterator[InputBatch], key: str) -> Iterator[InputBatch]:
        for batch in batches:
            self.values += values_of([batch])
            with closing(Store(self._data_dir)) as store, store.transaction():
                assert isinstance(batch.progress, InputProgress)
                set_progress(store, key, batch.progress)
            yield batch

    def run_to_end(self) -> None:
        """All of it; the run is taken for one that was killed afterwards."""
        with self.run() as batches:
            for _ in batches:
                pass


@pytest.fixture(params=LAYOUTS)
def resuming(request: pytest.FixtureRequest, tmp_path: Path) -> Resuming:
    made = Resuming(tmp_path, request.param)
    made.append(head(request.param))
    return made


def test_killed_run_reads_its_long_line_again(resuming: Resuming, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither its middle nor its rest is taken for a line, and what precedes it is not sent twice."""
    layout = resuming.layout
    resuming.append(written(layout, "AA") + written(layout, "x" * 2 * LONGEST_LINE)[:-4])
    resuming.run_to_end()
    assert resuming.values == ["AA"]
    capsys.readouterr()
    resuming.append(b"\n" + written(layout, "B6"))
    resuming.run_to_end()
    assert capsys.readouterr().err == f"resuming at line 3\nline 3 skipped: {TOO_LONG}\n"
    resuming.append(written(layout, "9E"))
    resuming.run_to_end()
    assert capsys.readouterr().err == "resuming at line 5\n"
    assert resuming.values == ["AA", "B6", "9E"]


def test_last_line_without_newline_is_sent_once(
    resuming: Resuming, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was reported as it stood, so what is written behind it is no other line, and not sent again."""
    layout = resuming.layout
    whole = written(layout, "AA", "B6")
    resuming.append(whole.removesuffix(b"\n"))
    for more, values in ((b"", ["AA", "B6"]), (b"more", ["AA", "B6"]), (b"\n", ["AA", "B6"])):
        resuming.append(more)
        resuming.run_to_end()
        assert resuming.values == values
    assert "skipped" not in capsys.readouterr().err
    resuming.append(written(layout, "9E"))
    resuming.run_to_end()
    assert resuming.values == ["AA", "B6", "9E"]
    assert capsys.readouterr().err == "resuming at line 4\n"


def test_bad_last_line_without_newline_is_read_again(resuming: Resuming) -> None:
    layout = resuming.layout
    last = written(layout, "B6")
    half = last[:1]  # lacks its field
    resuming.append(written(layout, "AA") + half)
    resuming.run_to_end()
    resuming.append(last[1:])
    resuming.run_to_end()
    assert resuming.values == ["AA", "B6"]


def test_the_end_of_a_file_is_its_end(resuming: Resuming) -> None:
    """What is written once a run has taken the last line, which lacks its end, is left to the next."""
    layout = resuming.layout
    resuming.append(written(layout, "AA", "B6").removesuffix(b"\n"))
    feed = InputBatches(layout, "v", None, text, batch_lines=1)
    progress = ResumePoints(resuming.path.parent, SECRET, "carrier", "v", resuming.path)
    with resuming.path.open("rb") as stream:
        file = InputFile(resuming.path, stream.fileno(), follow=False)
        found = []
        for batch in feed.batches(file, progress.start(file)):
            found += values_of([batch])
            if found == ["AA", "B6"]:
                resuming.append(b"\n" + written(layout, "9E"))
    assert found == ["AA", "B6"]
