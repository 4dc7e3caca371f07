"""Lines to values: each line is a report or counted as skipped, and no message shows what was in it."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from deploy.produce.input import batches as feed_module
from deploy.produce.input import values as input_values
from deploy.produce.input.batches import LACKING, InputBatches
from deploy.produce.input.json_lines import TOO_DEEP
from deploy.produce.input.resume import Place
from deploy.produce.input.source import FeedError
from deploy.produce.input.times import WRONG_TIME
from deploy.produce.input.values import Value
from deploy.produce.timing import DEFAULT, RunTiming
from tests.support.deploy.input_fakes import Pieces

CANARY = "canary-7391"
Read = tuple[list[Value], list[str] | None]


def csv(clients: str | None = None, *, integers: bool = False, strict: bool = False) -> InputBatches:
    reader = input_values.written_integer if integers else input_values.text
    return InputBatches("csv", "value", clients, reader, strict)


def jsonl(clients: str | None = None, *, integers: bool = False, strict: bool = False) -> InputBatches:
    reader = input_values.integer if integers else input_values.text
    return InputBatches("jsonl", "value", clients, reader, strict)


def read(feed: InputBatches, *given: str | bytes | None) -> Read:
    """All batches of these pieces as one."""
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in given]
    values: list[Value] = []
    clients: list[str] = []
    for batch in feed.batches(Pieces(pieces), Place()):
        values += batch.values
        clients += batch.clients or []
    return values, clients if feed.client_field else None


def test_csv_columns_are_found_by_name() -> None:
    assert read(csv("client"), "client,value\nann,AA\nben,B6\n") == (["AA", "B6"], ["ann", "ben"])
    assert read(csv(), "client,value\nann,AA\n") == (["AA"], None)


def test_pairs_are_read_from_two_columns_or_fields() -> None:
    feed = InputBatches("csv", "from", None, input_values.text_pair, second_field="to")
    assert read(feed, "to,x,from\nJFK,1,AA\n,2,\nLGA\n") == ([("AA", "JFK"), ("", "")], None)
    assert (feed.used, feed.skipped) == (2, 1)
    assert feed.options == "--field from, --second-field to"
    feed = InputBatches("jsonl", "from", None, input_values.text_pair, second_field="to")
    lines = '{"from": "AA", "to": 7}\n{"from": "AA"}\n{"to": null, "from": [1]}\n'
    assert read(feed, lines) == ([("AA", "7"), ("[1]", "null")], None)


def test_csv_roundtrips() -> None:
    """Quoted line ends, a byte order mark, empty texts and spaces: nothing is changed or left out."""
    text = '\ufeffvalue,x\r\n"a\r\nb",1\r\n,2\r\n é ,3\r\n"say ""hi""",4\r\n'
    assert read(csv(), text) == (["a\r\nb", "", " é ", 'say "hi"'], None)
    assert read(csv(), *[bytes([byte]) for byte in text.encode()]) == (
        ["a\r\nb", "", " é ", 'say "hi"'],
        None,
    )


def test_short_and_long_csv_rows_are_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    """A decimal comma makes a row too long, and its value another one."""
    feed = csv()
    assert read(feed, "x,value\n1,AA\n2\n3,1,5\n4,B6\n") == (["AA", "B6"], None)
    assert (feed.used, feed.skipped) == (2, 2)
    assert "line 4 skipped: it has 3 fields, the first line 2\n" in capsys.readouterr().err


def test_report_is_sent_for_any_text() -> None:
    feed = csv(integers=True)
    assert read(feed, "value\n3\n-4\nabc\n1e3\n" + "9" * 5000 + "\n") == ([3, -4, -1, -1, -1], None)
    assert feed.skipped == 0


def test_csv_lines_are_named_by_where_they_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert read(csv(), 'x,value\n"a\nb",AA\n\n"c\nd"\n') == (["AA"], None)
    assert capsys.readouterr().err == f"line 4 skipped: {LACKING}\nline 5 skipped: {LACKING}\n"


def test_empty_line_is_a_record_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    """The empty value of a single column is sent, as no value is a reason to leave a line out; else bad."""
    feed = csv()
    assert read(feed, 'value\nAA\n\n\r\n""\nB6\n') == (["AA", "", "", "", "B6"], None)
    assert (feed.used, feed.skipped, capsys.readouterr().err) == (5, 0, "")
    assert read(csv(), "value,x\nAA,1\n\nB6,2\n") == (["AA", "B6"], None)
    assert capsys.readouterr().err == f"line 3 skipped: {LACKING}\n"
    assert read(jsonl(), '{"value": "AA"}\n\n{"value": "B6"}\n') == (["AA", "B6"], None)
    assert capsys.readouterr().err == "line 2 skipped: it is not a JSON object\n"


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (f'"AA"{CANARY}', "it is not CSV: ',' expected after '\"'"),
        (f"{CANARY}\r{CANARY}", "it is not CSV: new-line character seen in unquoted field"),
        (f'"{CANARY}', "it is not CSV: unexpected end of data"),
        (CANARY.encode() + b"\xff", "it is not UTF-8"),
        (
            f'"{CANARY}\n'.encode() + b"\xff",
            "it begins a record that is not UTF-8\nline 4 skipped: it is not UTF-8\n",
        ),
    ],
)
def test_a_bad_line_of_csv_costs_no_other(
    bad: str | bytes, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An open quote takes nothing of what follows with it."""
    line = bad.encode() if isinstance(bad, str) else bad
    assert read(csv(), b"value\nAA\n" + line + b"\nB6\n9E\n") == (["AA", "B6", "9E"], None)
    words = capsys.readouterr().err
    assert words.startswith(f"line 3 skipped: {fault}")
    assert len(words.splitlines()) == max(1, len(fault.splitlines()))
    assert CANARY not in words


def test_columns_that_nobody_asks_for_may_have_one_name() -> None:
    assert read(csv(), "x,value,x\n1,AA,2\n") == (["AA"], None)


def test_json_lines_are_objects_with_the_right_types() -> None:
    lines = [
        '\ufeff{"value": "AA", "who": "ann"}',
        '{"value": "", "who": "ben"}',
        '{"who": "x", "value": "é\\n"}',
    ]
    assert read(jsonl("who"), "\n".join(lines)) == (["AA", "", "é\n"], ["ann", "ben", "x"])
    assert read(jsonl(integers=True), '{"value": 3}\n{"value": -99999999999999999999}') == (
        [3, -99999999999999999999],
        None,
    )


@pytest.mark.parametrize("depth", range(900, 1010))
def test_no_depth_of_nesting_stops_a_run(depth: int) -> None:
    """The parser goes a little deeper than what makes a text of the value."""
    feed = jsonl()
    line = b'{"value": ' + b"[" * depth + b"]" * depth + b"}\n"
    values, _ = read(feed, line + b'{"value": "AA"}\n')
    assert (values[-1], feed.used + feed.skipped) == ("AA", 2)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"broken", "it is not a JSON object"),
        (b"[" * 100_000, TOO_DEEP),
        (b'{"who": "x", "value": ' + b"[" * 3_000 + b"]" * 3_000 + b"}", TOO_DEEP),
        (b"[1]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (b"", "it is not a JSON object"),
        (b'{"value": "\xff"}', "it is not UTF-8"),
        (b'{"who": "x"}', LACKING),
        (b'{"value": "AA"}', LACKING),
        (b'{"value": "AA", "who": 7}', LACKING),
        (b'{"value": "AA", "who": ""}', LACKING),
    ],
)
def test_json_lines_of_another_kind_are_skipped(
    line: bytes, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = b'{"value": "AA", "who": "ann"}\n'
    feed = jsonl("who")
    assert read(feed, good + line + b"\n" + good) == (["AA", "AA"], ["ann", "ann"])
    assert feed.skipped == 1
    assert capsys.readouterr().err == f"line 2 skipped: {fault}\n"


def test_few_bad_lines_are_named_and_many_counted(capsys: pytest.CaptureFixture[str]) -> None:
    feed = jsonl()
    assert read(feed, '{"value": "AA"}\n' + f"{CANARY}\n" * 7) == (["AA"], None)
    assert feed.skipped == 7
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [f"line {n} skipped: it is not a JSON object" for n in range(2, 7)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{CANARY}\nx\n", "the input has no column 'value'; its first line must name the columns"),
        (
            f'{{"value": "{CANARY}", "x": 1}}\n',
            "the input has no column 'value'; for JSON lines give --format jsonl",
        ),
        ('{"value":1}\n', "the input has no column 'value'; for JSON lines give --format jsonl"),
        ("values\nx\n", "the input has no column 'value'; did you mean 'values'?"),
        ("", "the input is empty; its first line must name the columns"),
        (f"value,x,value\n{CANARY},1,2\n", "the input has 2 columns 'value'; rename all but one"),
        (
            f'"value\n{CANARY}\n',
            "the first line of the input must name the columns: it is not CSV: unexpected end of data",
        ),
    ],
)
def test_unusable_header_is_refused_unquoted(text: str, words: str) -> None:
    with pytest.raises(FeedError) as caught:
        read(csv(), text)
    assert str(caught.value) == words
    assert caught.value.__cause__ is None


def test_a_column_of_clients_must_be_there() -> None:
    with pytest.raises(FeedError, match=r"^the input has no column 'client'; its first line must name"):
        read(csv("client"), "value\nAA\n")


def test_an_input_without_lines_is_not_an_error() -> None:
    assert read(csv(), "value\n") == ([], None)
    assert read(jsonl(), "") == ([], None)


def test_batches_end_when_full_or_after_a_second() -> None:
    def sizes(*pieces: bytes | None, timing: RunTiming = DEFAULT) -> list[int]:
        feed = replace(csv(), timing=timing)
        return [len(batch.values) for batch in feed.batches(Pieces(pieces), Place())]

    assert sizes(b"value\n" + b"AA\n" * 25_000) == [10_000, 10_000, 5_000]
    assert sizes(b"value\nAA\n", None, b"B6\n") == [2]
    assert sizes(b"value\n" + b"AA\n" * 3, timing=RunTiming(batch=0)) == [1, 1, 1]


def test_silence_sends_buffered_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line nor a record whose end has not come holds back those before it."""
    now = [0.0]
    monkeypatch.setattr(feed_module.time, "monotonic", lambda: now[0])

    def pieces() -> Iterator[bytes | None]:
        yield b'value\nAA\nB6\n"9'
        now[0] = 1.0
        yield None
        yield b'\nE"\nDL'
        yield b"\n"

    batches = csv().batches(Pieces(pieces()), Place())
    assert [batch.values for batch in batches] == [["AA", "B6"], ["9\nE", "DL"]]


def test_strict_feed_sends_what_precedes_a_bad_line() -> None:
    place = Place()
    feed = csv(strict=True)
    batches = feed.batches(Pieces([b"x,value\n1,AA\n4,9E\n2\n3,B6\n"]), place)
    assert next(batches).values == ["AA", "9E"]
    assert place.lines == 3
    with pytest.raises(FeedError) as caught:
        next(batches)
    assert str(caught.value) == f"line 4 of the input: {LACKING}; the lines before it were processed"
    assert feed.skipped == 0


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_times_of_events_come_from_their_field(layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line without a usable time is skipped, and its content is not shown."""
    feed = InputBatches(layout, "value", None, input_values.text, time_field="when")
    rows = [("AA", "60"), ("B6", "1970-01-01T00:02:00Z"), ("9E", CANARY), ("DL", "61.5")]
    lines = {
        "csv": "when,value\n" + "".join(f"{when},{value}\n" for value, when in rows),
        "jsonl": "".join(json.dumps({"value": value, "when": when}) + "\n" for value, when in rows),
    }
    (batch,) = feed.batches(Pieces([lines[layout].encode()]), Place())
    assert batch.values == ["AA", "B6", "DL"]
    assert batch.times == [60.0, 120.0, 61.5]
    assert feed.skipped == 1
    output = capsys.readouterr()
    assert WRONG_TIME in output.err
    assert CANARY not in output.err
