"""Two inputs that differ in values alone become the same reports but for noisy bits, with the same messages.

A writer of CSV or JSON lines escapes values; some do so badly. Then the run stops at that line, and the lines
before it are the same reports.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.source import LineError
from deniable.deploy.produce.input.values import takes_several, takes_two, value_reader
from tests.support.deploy.input_fakes import Pieces
from tests.support.producers.recording.any_values import COLLECTIONS, TEXTS, randomization, seen

LINES = 4
CLIENTS = ["ann", "ben", "", "ann"]  # the third line is skipped
TIMES = [100_000_000, 100_000_060.5, 1_000_003_600, 1e9]
LONG = "x" * 1_100_000

# Derandomized, so a failure is no chance. That a listed kind of value leaves its line out, or alters another
# field, fails with the first example that has it.
bounded = settings(max_examples=12, derandomize=True, deadline=None, database=None)

#: Cells as bytes: quoted as they should be, or raw, without what divides cells.
RAW_CELLS = st.sampled_from([
    b'"a"b', b'""a', b'a"', b"\r", b"a\rb", b"\xff\xfe", b"Stra\xdfe", b"\xe2\x82", b"\0", b"\xef\xbb\xbf",
    b"1e400",    b"\t", b"\\x41\\", b"", LONG.encode(),
]) | st.binary(max_size=6).map(lambda raw: re.sub(rb'[,\n"]', b"", raw))  # fmt: skip
CELLS = (
    TEXTS.map(lambda text: b'"' + text.replace('"', '""').encode("utf-8", "surrogatepass") + b'"') | RAW_CELLS
)
#: What a line of JSON holds as a value; the last kinds are no JSON.
JSON_VALUES = (
    st.recursive(
        TEXTS | st.integers() | st.floats() | st.none() | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
        max_leaves=4,
    ).map(lambda value: json.dumps(value).encode())
    | TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    | st.sampled_from([
        rb'"\x41"', b'"a\tb"', b'"a\rb"', b'"say "hi""', b"1e400", b"-1e400", b"NaN", b"nothing", b"\xff",
        b"", b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000, b"9" * 5000,
        b'"\xff"', b"[1, }",
        b'"' + LONG.encode() + b'"',
    ])
)  # fmt: skip


def csv_lines(cells: list[bytes], second: list[bytes]) -> bytes:
    rows = zip(cells, CLIENTS, TIMES, second, strict=True)
    return b"v,c,t,w\n" + b"".join(
        b"%b,%b,%b,%b\n" % (cell, client.encode(), str(at).encode(), other)
        for cell, client, at, other in rows
    )


def json_lines(values: list[bytes | None], second: list[bytes | None]) -> bytes:
    lines = b""
    for value, client, at, other in zip(values, CLIENTS, TIMES, second, strict=True):
        fields = {
            b"v": value,
            b"c": json.dumps(client).encode(),
            b"n": b"5",
            b"t": str(at).encode(),
            b"w": other,
        }
        lines += b"{%b}\n" % b", ".join(b'"%b": %b' % (k, v) for k, v in fields.items() if v is not None)
    return lines


def pieces(data: bytes, sizes: list[int]) -> Iterator[bytes | None]:
    """As a followed file or a pipe: pieces, between which nothing arrives."""
    start = 0
    for size in chain(sizes, [1 << 16] * (1 + len(data) // (1 << 16))):
        yield data[start : start + size] if start < len(data) else None
        yield None
        start += size


def outcome(name: str, layout: str, data: bytes, *, sizes: list[int], clients: bool = True) -> dict[str, Any]:
    """What leaves of an input, and what is said; of a broken line its number."""
    collection = COLLECTIONS[name]
    second = "w" if takes_two(collection) else None
    client, reader = "c" if clients else None, value_reader(collection)
    feed = InputBatches(layout, "v", client, reader, time_field="t", second_field=second)
    left: list[object] = []
    source, place, stopped = randomization(), Place(), None
    with redirect_stderr(io.StringIO()) as said:
        try:
            for batch in feed.batches(Pieces(pieces(data, sizes)), place):
                left += seen(source.submissions(name, batch.values, batch.clients, batch.times))
        except LineError as error:
            stopped = int(re.match(r"line (\d+) of the input: ", str(error))[1])  # type: ignore[index]
    return {
        "left": left,
        "said": said.getvalue(),
        "lines": feed.used,
        "skipped": feed.skipped,
        "stopped": stopped,
    }


def two_lists(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=LINES, max_size=LINES)


SIZES = st.lists(st.integers(1, 40), max_size=20)
OF_CSV = [name for name, each in COLLECTIONS.items() if not takes_several(each)]


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_CSV)
@bounded
@given(one=two_lists(CELLS), other=two_lists(CELLS), sizes=SIZES, clients=st.booleans())
def test_csv_leaves_the_same_whatever_its_values(
    name: str, one: list[bytes], other: list[bytes], sizes: list[int], clients: bool
) -> None:
    left, also = (
        outcome(name, "csv", csv_lines(cells, cells), sizes=sizes, clients=clients) for cells in (one, other)
    )
    assert left == also
    assert (left["lines"], left["skipped"], left["stopped"]) == ((3, 1, None) if clients else (4, 0, None))


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
@bounded
@given(
    one=two_lists(JSON_VALUES | st.none()),
    other=two_lists(JSON_VALUES | st.none()),
    sizes=SIZES,
    clients=st.booleans(),
)
def test_json_leaves_the_same_whatever_its_values(
    name: str, one: list[bytes], other: list[bytes], sizes: list[int], clients: bool
) -> None:
    """None is a field that is missing."""
    left, also = (
        outcome(name, "jsonl", json_lines(values, values), sizes=sizes, clients=clients)
        for values in (one, other)
    )
    assert left == also
    assert (left["lines"], left["skipped"], left["stopped"]) == ((3, 1, None) if clients else (4, 0, None))


BREAKING = st.text(st.sampled_from('",\\{}[]: \ra1'), min_size=1, max_size=8).map(str.encode)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["csv", "jsonl"])
@settings(bounded, max_examples=150)
@given(value=BREAKING, number=st.integers(0, 1))
def test_a_badly_escaped_value_is_one_report_or_stops_at_its_line(
    layout: str, value: bytes, number: int
) -> None:
    """The lines before are the same reports; no line is skipped, and no client is another."""
    values = [b"1"] * LINES
    values[number] = value if layout == "csv" else b'"' + value + b'"'
    written = csv_lines if layout == "csv" else json_lines
    fine = outcome("listed", layout, written([b"1"] * LINES, [b"1"] * LINES), sizes=[])  # type: ignore[arg-type]
    found = outcome("listed", layout, written(values, [b"1"] * LINES), sizes=[])  # type: ignore[arg-type]
    if found["stopped"] is None:
        assert found == fine
        return
    assert found["stopped"] == number + 1 + (layout == "csv")
    assert (found["lines"], found["skipped"]) == (number, 0)
    if number:
        (batch,), (whole,) = found["left"], fine["left"]
        assert batch[0] == whole[0][:number]
        assert batch[3] == whole[3][:number]


def test_csv_of_a_library_is_read_as_it_was_written() -> None:
    """The property above holds of what csv.writer writes, too, and no value is altered."""
    values = ["a,b", 'a"b', '"', "a\nb", "a\rb", "a\r\nb", "", " a ", "\0", "é"]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["v", "c"], *([value, "ann"] for value in values)])
    feed = InputBatches("csv", "v", "c", value_reader(COLLECTIONS["listed"]))
    (batch,) = feed.batches(Pieces([text.getvalue().encode()]), Place())
    assert batch.values == values
