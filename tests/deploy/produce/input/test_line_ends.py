"""Lines that are too long, or whose end has not come: none fills memory, is skipped, or is taken twice."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from deniable.deploy.produce.input import batches as batches_module
from deniable.deploy.produce.input import csv_records
from deniable.deploy.produce.input import lines as input_lines
from deniable.deploy.produce.input.batches import InputBatch, InputBatches
from deniable.deploy.produce.input.csv_records import BROKEN_QUOTES
from deniable.deploy.produce.input.lines import too_long
from deniable.deploy.produce.input.resume import Place, ResumePoints
from deniable.deploy.produce.input.source import CHUNK_BYTES, InputFile, LineError
from deniable.deploy.produce.input.values import one
from deniable.producers.storage.input_progress import InputProgress, set_progress
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import Secret
from tests.support.deploy.input_fakes import Pieces

CSV, JSON = "csv", "jsonl"
LONGEST_LINE = 1 << 20
LAYOUTS = [CSV, JSON]


@pytest.fixture(autouse=True)
def _lines_of_a_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that these tests are quick."""
    for module in (input_lines, csv_records):
        monkeypatch.setattr(module, "LONGEST_LINE", LONGEST_LINE)


def feed_of(layout: str, *, strict: bool = False) -> InputBatches:
    return InputBatches(layout, "v", None, one, strict)


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


def stop_of(feed: InputBatches, data: Iterator[bytes]) -> tuple[list[object], str]:
    """The values before the line that stops the run, and the message."""
    batches: list[InputBatch] = []
    with pytest.raises(LineError) as caught:
        batches += feed.batches(Pieces(data), Place())
    return values_of(batches), str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_longest_line_is_taken_and_a_longer_one_stops_the_run(layout: str) -> None:
    longest = "x" * (LONGEST_LINE - len(written(layout, "")))
    for end in (b"\n", b""):
        feed = feed_of(layout)
        data = head(layout) + written(layout, "AA", longest, "B6", longest)
        assert read(feed, data.removesuffix(b"\n") + end) == ["AA", longest, "B6", longest]
        data = head(layout) + written(layout, "AA", longest + "yy")
        _, message = stop_of(feed_of(layout), iter([data.removesuffix(b"\n") + end]))
        assert message.startswith(f"line 3 of the input: {too_long()}; ")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_endless_line_never_fills_the_memory(layout: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield head(layout)
        while True:
            yield bytes(CHUNK_BYTES)

    tracemalloc.start()
    try:
        _, message = stop_of(feed_of(layout), pieces())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.startswith(f"line 2 of the input: {too_long()}; ")
    assert peak < 8 * LONGEST_LINE


def test_long_values_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "BATCH_BYTES", 1_000)
    data = head(CSV) + written(CSV, *["x" * 500] * 5)
    assert [len(batch.values) for batch in feed_of(CSV).batches(Pieces([data]), Place())] == [2, 2, 1]


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        ([b'2","\n'] * 500, too_long),
        ([b"2,B6\n"] * 500, too_long),
        ([b"2," + b"x" * 3_000 + b"\n"], too_long),
        ([b"2,B6\n"], BROKEN_QUOTES),
    ],
)
def test_an_unclosed_quote_stops_the_run_at_its_line(
    follows: list[bytes], message: str | Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the record goes on: which lines are of the value is unknown, and none of them is used."""
    for module in (input_lines, csv_records):
        monkeypatch.setattr(module, "LONGEST_LINE", 1_000)
    data = head(CSV) + written(CSV, "AA") + b'1,"C\n' + b"".join(follows) + written(CSV, "9E")
    values, stopped = stop_of(feed_of(CSV), iter([data]))
    assert values == ["AA"]
    words = message if isinstance(message, str) else message()
    assert stopped.startswith(f"line 3 of the input: {words}; ")


def test_multiline_record_has_the_limit_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (input_lines, csv_records):
        monkeypatch.setattr(module, "LONGEST_LINE", 1_000)
    longest = "x\n" * ((1_000 - len('1,""\n')) // 2)
    assert read(feed_of(CSV), head(CSV) + written(CSV, f'"{longest}"')) == [longest]
    _, message = stop_of(feed_of(CSV), iter([head(CSV) + written(CSV, f'"{longest}xx"')]))
    assert message.startswith(f"line 2 of the input: {too_long()}; ")


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


def test_half_a_line_at_the_end_stops_the_run_and_is_read_again(resuming: Resuming) -> None:
    layout = resuming.layout
    last = written(layout, "B6")
    half = last[:1]  # lacks its field
    resuming.append(written(layout, "AA") + half)
    with pytest.raises(LineError):
        resuming.run_to_end()
    assert resuming.values == ["AA"]
    resuming.append(last[1:])
    resuming.run_to_end()
    assert resuming.values == ["AA", "B6"]


def test_the_end_of_a_file_is_its_end(resuming: Resuming) -> None:
    """What is written once a run has taken the last line, which lacks its end, is left to the next."""
    layout = resuming.layout
    resuming.append(written(layout, "AA", "B6").removesuffix(b"\n"))
    feed = InputBatches(layout, "v", None, one, batch_lines=1)
    progress = ResumePoints(resuming.path.parent, SECRET, "carrier", "v", resuming.path)
    with resuming.path.open("rb") as stream:
        file = InputFile(resuming.path, stream.fileno(), follow=False)
        found = []
        for batch in feed.batches(file, progress.start(file)):
            found += values_of([batch])
            if found == ["AA", "B6"]:
                resuming.append(b"\n" + written(layout, "9E"))
    assert found == ["AA", "B6"]
