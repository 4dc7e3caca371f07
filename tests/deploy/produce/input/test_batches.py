"""Lines to values: each line is a report or counted as skipped, and no message shows what was in it."""

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from deniable.deploy.produce.input import batches as feed_module
from deniable.deploy.produce.input import values as input_values
from deniable.deploy.produce.input.batches import NO_CLIENT, NOT_UTF8, STOPPED, InputBatches
from deniable.deploy.produce.input.csv_records import BROKEN_QUOTES
from deniable.deploy.produce.input.json_lines import ARRAY, BROKEN_OBJECT, NO_OBJECT
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.source import FeedError, LineError
from deniable.deploy.produce.input.times import WRONG_TIME
from deniable.deploy.produce.input.values import Value
from deniable.deploy.produce.timing import DEFAULT, RunTiming
from tests.support.deploy.input_fakes import Pieces
from tests.support.messages import PinMessages

CANARY = "canary-7391"
Read = tuple[list[Value], list[str] | None]


def csv(clients: str | None = None, *, strict: bool = False) -> InputBatches:
    return InputBatches("csv", "value", clients, input_values.one, strict)


def jsonl(clients: str | None = None, *, strict: bool = False) -> InputBatches:
    return InputBatches("jsonl", "value", clients, input_values.one, strict)


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
    feed = InputBatches("csv", "from", None, input_values.pair, second_field="to")
    assert read(feed, "to,x,from\nJFK,1,AA\n,2,\n") == ([("AA", "JFK"), ("", "")], None)
    assert (feed.used, feed.skipped) == (2, 0)
    assert feed.options == "--field from, --second-field to"
    feed = InputBatches("jsonl", "from", None, input_values.pair, second_field="to")
    lines = '{"from": "AA", "to": 7}\n{"from": "AA"}\n{"to": null, "from": [1]}\n'
    assert read(feed, lines) == ([("AA", 7), ("AA", None), ("[1]", None)], None)


def test_csv_roundtrips() -> None:
    """Quoted line ends, a byte order mark, empty texts and spaces: nothing is changed or left out."""
    text = '\ufeffvalue,x\r\n"a\r\nb",1\r\n,2\r\n é ,3\r\n"say ""hi""",4\r\n'
    assert read(csv(), text) == (["a\r\nb", "", " é ", 'say "hi"'], None)
    assert read(csv(), *[bytes([byte]) for byte in text.encode()]) == (
        ["a\r\nb", "", " é ", 'say "hi"'],
        None,
    )


def stopped_at(text: str) -> str:
    """Read a text whose third line stops the run, behind a report of AA; return the message."""
    feed, place = csv("client"), Place()
    batches = feed.batches(Pieces([text.encode()]), place)
    assert next(batches).values == ["AA"]
    with pytest.raises(LineError) as caught:
        next(batches)
    assert (feed.used, feed.skipped, place.lines) == (1, 0, 2)
    assert str(caught.value).startswith("line 3 of the input: ")
    assert CANARY not in str(caught.value)
    return str(caught.value)


def test_a_row_of_another_number_of_cells_stops_the_run(pin_messages: PinMessages) -> None:
    """A comma in a value makes a row too long, and another cell of it the client."""
    rows = {"one too many": "3,1,5", "one too few": "2", "a space": " "}
    pin_messages(
        {what: partial(stopped_at, f"client,value\nann,AA\n{row}\nben,B6\n") for what, row in rows.items()}
    )


def test_report_is_sent_for_any_text() -> None:
    feed, values = csv(), ["3", "-4", "abc", "1e3", "9" * 5000]
    assert read(feed, "\n".join(["value", *values])) == (values, None)
    assert feed.skipped == 0


def test_csv_lines_are_named_by_where_they_begin(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LineError, match=r"^line 5 of the input: "):
        read(csv(), 'x,value\n"a\nb",AA\n\n"c\nd"\n')
    assert capsys.readouterr().err == ""


def test_empty_line_is_ignored_unless_it_is_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    """A line end at the edge of a value leaves one: it must show in no message, nor stop a strict run."""
    feed = csv()
    assert read(feed, 'value\nAA\n\n\r\n""\nB6\n') == (["AA", "", "", "", "B6"], None)
    assert (feed.used, feed.skipped, capsys.readouterr().err) == (5, 0, "")
    for other, lines in (
        (csv(), "value,x\nAA,1\n\nB6,2\n"),
        (jsonl(), '{"value": "AA"}\n\n{"value": "B6"}\n'),
    ):
        assert read(other, lines) == (["AA", "B6"], None)
        assert (other.skipped, capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (b'"AA"x', "AAx"),
        (b'A"A"', 'A"A"'),
        (b"A\rA", "A\ufffdA"),
        (b'"A\rA"', "A\rA"),
        (b"\rA", "\ufffdA"),
        (b"Ober\xf6sterreich", "Ober\ufffdsterreich"),
        (b"\xe2\x82", "\ufffd"),
        (b"A\x00A\tA\\", "A\x00A\tA\\"),
        (b"x" * (1 << 20), "x" * (1 << 20)),
    ],
)
def test_whatever_a_cell_holds_its_line_is_used(
    cell: bytes, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = b"value,client\nAA,ann\n" + cell + b",ben\nB6,cid\n"
    assert read(csv("client"), data) == (["AA", value, "B6"], ["ann", "ben", "cid"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("bad", [f'"{CANARY}', f'"AA"x,"{CANARY}', f'"{CANARY}\n"x,ben', f'"{CANARY}\n'])
def test_a_quote_that_does_not_close_stops_the_run(bad: str) -> None:
    """The lines after it may be a part of the value."""
    assert BROKEN_QUOTES in stopped_at(f"value,client\nAA,ann\n{bad}\nB6,ben\n")


def test_columns_that_nobody_asks_for_may_have_one_name() -> None:
    assert read(csv(), "x,value,x\n1,AA,2\n") == (["AA"], None)


def test_json_lines_are_objects_with_the_right_types() -> None:
    lines = [
        '\ufeff{"value": "AA", "who": "ann"}',
        '{"value": "", "who": "ben"}',
        '{"who": "x", "value": "é\\n"}',
    ]
    assert read(jsonl("who"), "\n".join(lines)) == (["AA", "", "é\n"], ["ann", "ben", "x"])
    assert read(jsonl(), '{"value": 3}\n{"value": -99999999999999999999}') == (
        [3, -99999999999999999999],
        None,
    )


def test_no_depth_of_nesting_stops_a_run() -> None:
    """The parser goes a little deeper than what makes a text of the value."""
    for depth in range(900, 1010):
        feed = jsonl("who")
        line = b'{"value": ' + b"[" * depth + b"]" * depth + b', "who": "ann"}\n'
        values, clients = read(feed, line + b'{"value": "AA", "who": "ben"}\n')
        assert (values[-1], clients, feed.used) == ("AA", ["ann", "ben"], 2)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (rb'"\x41"', None),
        (b'"a\tb\rc"', "a\tb\rc"),
        (b'"say "hi""', None),
        (b'"\xff"', "\ufffd"),
        (b'"\\ud800"', "\ud800"),
        (b'"a,\\"}{b"', 'a,"}{b'),
        (b"[" * 3_000 + b"]" * 3_000, None),
        (b"[1, }", None),
        (b"1e400", math.inf),
        (b"nothing", None),
        (b"", None),
        (b"9" * 5_000, math.inf),
        (b'"' + b"x" * (1 << 20) + b'"', "x" * (1 << 20)),
    ],
)
def test_whatever_a_json_value_is_its_line_is_used(
    written: bytes, value: Value, capsys: pytest.CaptureFixture[str]
) -> None:
    line = b'{"n": 5, "value": ' + written + b', "who": "ann"}\n'
    assert read(jsonl("who"), line) == ([value], ["ann"])
    others = InputBatches("jsonl", "n", "who", input_values.one)
    assert read(others, line) == ([5], ["ann"])
    assert read(jsonl("who"), b'{"who": "ann"}\n') == ([None], ["ann"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line",
    [
        b'{"value": "AA',
        b'{"value": "5" tall", "who": "x"}',
        b'{"value" "\\x"}',
        b'{"value": 1]}',
        b'{"a": NaN},',
    ],
)
def test_an_object_that_cannot_be_divided_stops_the_run(line: bytes) -> None:
    batches = jsonl().batches(Pieces([b'{"value": "AA"}\n' + line + b'\n{"value": "B6"}\n']), Place())
    assert next(batches).values == ["AA"]
    with pytest.raises(LineError) as caught:
        next(batches)
    assert str(caught.value) == f"line 2 of the input: {BROKEN_OBJECT}; {STOPPED}"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"broken", NO_OBJECT),
        (b"[" * 100_000, ARRAY),
        (b"[1]", ARRAY),
        (b"null", NO_OBJECT),
        (b' [{"value": "AA"}]', ARRAY),
        (b'{"value": "AA"}', NO_CLIENT),
        (b'{"value": "AA", "who": 7.5}', NO_CLIENT),
        (b'{"value": "AA", "who": true}', NO_CLIENT),
        (b'{"value": "AA", "who": ""}', NO_CLIENT),
        (rb'{"value": "AA", "who": "\x"}', NO_CLIENT),
    ],
)
def test_json_lines_of_a_kind_that_no_value_causes_are_skipped(
    line: bytes, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = b'{"value": "AA", "who": "ann"}\n'
    feed = jsonl("who")
    assert read(feed, good + line + b"\n" + good) == (["AA", "AA"], ["ann", "ann"])
    assert feed.skipped == 1
    assert capsys.readouterr().err == f"line 2 skipped: {fault}\n"


def test_few_bad_lines_are_named_and_many_counted(
    capsys: pytest.CaptureFixture[str], pin_messages: PinMessages
) -> None:
    feed = jsonl()
    assert read(feed, '{"value": "AA"}\n' + f"{CANARY}\n" * 7) == (["AA"], None)
    assert feed.skipped == 7
    output = capsys.readouterr()
    assert output.out == ""
    assert CANARY not in output.err
    pin_messages({"seven lines without an object": lambda: output.err})


def test_messages_of_headers(pin_messages: PinMessages) -> None:
    """An unusable header is not quoted."""
    texts = {
        "another column": f"{CANARY}\nx\n",
        "a JSON object": f'{{"value": "{CANARY}", "x": 1}}\n',
        "a JSON object without spaces": '{"value":1}\n',
        "a name that is near": "Value \nx\n",
        "semicolons": "value;x\nAA;1\n",
        "tabs": '"x"\t"value"\n1\tAA\n',
        "semicolons without the column": f"{CANARY};AA\n",
        "a carriage return": "values,x\rvalue,y\n",
        "the line of Excel": "sep=;\nvalue;x\nAA;1\n",
        "carriage returns alone": "value\rAA\rB6\r",
        "no line": "",
        "a column twice": f"value,x,value\n{CANARY},1,2\n",
        "a quote that does not close": f'"value\n{CANARY}\n',
    }
    for text in texts.values():
        with pytest.raises(FeedError) as caught:
            read(csv(), text)
        assert caught.value.__cause__ is None
        assert CANARY not in str(caught.value)
    pin_messages(
        {what: partial(read, csv(), text) for what, text in texts.items()}
        | {"no column of clients": partial(read, csv("client"), "value\nAA\n")}
    )


def test_control_characters_of_an_option_are_escaped(pin_messages: PinMessages) -> None:
    feed = InputBatches("csv", "a\x1b[2Jb", None, input_values.one)
    pin_messages({"an escape in --field": partial(read, feed, "x\n1\n")})


def test_a_column_in_latin_1_is_named_with_the_remedy(pin_messages: PinMessages) -> None:
    feed = InputBatches("csv", "Größe", None, input_values.one)
    pin_messages({"a column in Latin-1": partial(read, feed, "Art,Größe\n1,2\n".encode("latin-1"))})


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_lines_that_are_not_utf_8_are_named_where_values_may_be(
    layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("value\nAA\nKöln\n" if layout == "csv" else '{}\n{"value": "AA"}\n{"value": "Köln"}\n').encode()
    for data, is_named in ((lines, False), (lines.decode().encode("latin-1"), True)):
        for names_bytes in (False, True):
            feed = InputBatches(layout, "value", None, input_values.one, names_bytes=names_bytes)
            read(feed, data)
            assert capsys.readouterr().err == (f"line 3: {NOT_UTF8}\n" if is_named and names_bytes else "")


def test_a_delimiter_may_be_another_character() -> None:
    feed = InputBatches("csv", "value", "who", input_values.one, delimiter=";")
    assert read(feed, 'value;who\n1,5;ann\n"a;b";ben\n"x"y;cid\n') == (
        ["1,5", "a;b", "xy"],
        ["ann", "ben", "cid"],
    )


@pytest.mark.parametrize("name", ["user.plan", "plan"])
def test_a_dotted_path_leads_into_objects(name: str) -> None:
    """A field whose name has the dot wins; what is not there is missing."""
    feed = InputBatches("jsonl", name, "who.id", input_values.one, time_field="at.s", second_field="x.y.z")
    feed.read_value = input_values.pair
    lines = [
        {"user": {"plan": "free"}, "plan": "free", "who": {"id": "ann"}, "at": {"s": 10**9}}
        | {"x": {"y": {"z": 1}}},
        {"user.plan": "team", "user": {"plan": "x"}, "plan": "team", "who": {"id": 7}, "at": {"s": 10**9}},
        {"user": "x", "who.id": "ben", "who": {"id": "x"}, "x": {"y": []}, "at.s": 10**9},
        {"user": {"plan": "x"}, "who": "ann", "at": {"s": 10**9}},
    ]
    (batch,) = feed.batches(Pieces([json.dumps(line).encode() + b"\n" for line in lines]), Place())
    assert batch.values == [("free", 1), ("team", None), (None, None)]
    assert (batch.clients, batch.times) == (["ann", "7", "ben"], [10**9] * 3)
    assert feed.skipped == 1


@pytest.mark.parametrize(("written", "client"), [("7", "7"), ("7.0", "7"), ('"7.0"', "7")])
def test_an_integer_id_of_a_client_is_its_decimal_text(written: str, client: str) -> None:
    assert read(jsonl("who"), f'{{"value": "AA", "who": {written}}}\n') == (["AA"], [client])


def test_the_first_batch_may_be_smaller() -> None:
    feed = replace(csv(), first_lines=2, batch_lines=3)
    batches = feed.batches(Pieces([b"value\n" + b"AA\n" * 7]), Place())
    assert [len(batch.values) for batch in batches] == [2, 3, 2]


def test_an_input_without_lines_is_not_an_error() -> None:
    assert read(csv(), "value\n") == ([], None)
    assert read(jsonl(), "") == ([], None)


@pytest.mark.slow
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


def test_strict_feed_sends_what_precedes_a_bad_line(pin_messages: PinMessages) -> None:
    place = Place()
    place.key = "kept"
    feed = csv("x", strict=True)
    batches = feed.batches(Pieces([b"x,value\n1,AA\n4,9E\n,B6\n3,B6\n"]), place)
    assert next(batches).values == ["AA", "9E"]
    assert place.lines == 3
    pin_messages({"a line without a client": lambda: next(batches)})
    assert feed.skipped == 0


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_times_of_events_come_from_their_field(layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line without a usable time is skipped, and its content is not shown."""
    feed = InputBatches(layout, "value", None, input_values.one, time_field="when")
    rows = [("AA", "1767225633"), ("B6", "20260101"), ("9E", CANARY), *[("DL", "1767225633250")] * 2]
    lines = {
        "csv": "when,value\n" + "".join(f"{when},{value}\n" for value, when in rows),
        "jsonl": "".join(json.dumps({"value": value, "when": when}) + "\n" for value, when in rows),
    }
    (batch,) = feed.batches(Pieces([lines[layout].encode()]), Place())
    assert batch.values == ["AA", "B6", "DL", "DL"]
    assert batch.times == [1_767_225_633, 1_767_225_600, *[1_767_225_633.25] * 2]
    assert feed.skipped == 1
    output = capsys.readouterr()
    assert WRONG_TIME in output.err
    assert output.err.count("13 digits are read as milliseconds") == 1
    assert CANARY not in output.err


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_another_encoding_is_seen_at_the_start_alone(layout: str) -> None:
    """Its first bytes may come one by one; in a later line they are of a value, which must not decide."""
    feed = InputBatches(layout, "value", None, input_values.one)
    head = "value\n" if layout == "csv" else '{"value": "AA"}\n'
    for data in (("\ufeff" + head).encode("utf-16-le"), ("\ufeff" + head).encode("utf-32-be")):
        with pytest.raises(FeedError, match=r"^the input begins with the byte order mark of UTF-(16|32); "):
            read(feed, *[bytes([byte]) for byte in data])
    mark = b"\xff\xfe"
    later = mark + b"\n" if layout == "csv" else b'{"value": "' + mark + b'"}\n'
    values, _ = read(feed, head.encode(), later)
    assert values[-1] == "\ufffd\ufffd"


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_a_compressed_input_is_refused_with_the_remedy(layout: str) -> None:
    feed = InputBatches(layout, "value", None, input_values.one)
    with pytest.raises(FeedError, match="zcat FILE"):
        read(feed, gzip.compress(b"value\nAA\n"))


def test_a_resumed_run_looks_for_no_encoding() -> None:
    """Where it begins is a later line, and skipped like any that is no object."""
    place, feed = Place(), InputBatches("jsonl", "value", None, input_values.one)
    place.advance(b"{}\n", is_reported=True)
    assert list(feed.batches(Pieces([b"\xff\xfe\n"]), place)) == []
    assert feed.skipped == 1


def test_an_open_quote_is_named_once_and_only_after_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    """A record that its writer completes soon is not named; each that waits longer is, without its text."""
    for seconds, lines in ((3600.0, []), (0.0, [2, 4])):
        feed = InputBatches(
            "csv", "value", None, input_values.one, timing=RunTiming(batch=9, open_quote=seconds)
        )
        pieces = ["value,x\n", f'"{CANARY}\n', None, None, '",1\n', None, f'"{CANARY}\n', None, '",2\n']
        values, _ = read(feed, *pieces)
        assert values == [f"{CANARY}\n"] * 2
        assert not feed.is_within_quote
        assert capsys.readouterr().err.splitlines() == [
            f"the input, line {line}: waiting for the closing quote of a cell; lines from there on are sent "
            "once it arrives"
            for line in lines
        ]
