"""Lines to values: each line is a report or counted as skipped, and no message shows what was in it."""

import io
from typing import Any

import pytest

from deploy import feed as feed_module
from deploy.feed import Batch, Feed, FeedError

CANARY = "canary-7391"


def feed(text: str | bytes, layout: str = "csv", clients: str | None = None, integers: bool = False) -> Feed:
    source = io.BytesIO(text.encode() if isinstance(text, str) else text)
    return Feed(source, layout, "value", clients, integers)


def read(given: Feed) -> Batch:
    """All batches as one."""
    values: list[str | int] = []
    clients: list[str] = []
    for batch, owners in given.batches():
        values += batch
        clients += owners or []
    return values, clients if given.client_field else None


def test_csv_columns_are_found_by_name() -> None:
    given = feed("client,value\nann,AA\nben,B6\n", clients="client")
    assert read(given) == (["AA", "B6"], ["ann", "ben"])
    assert read(feed("client,value\nann,AA\n")) == (["AA"], None)


def test_csv_is_read_as_it_is_written() -> None:
    """Quoted line ends, a byte order mark, empty texts and spaces: nothing is changed or left out."""
    text = '\ufeffvalue,x\r\n"a\r\nb",1\r\n,2\r\n é ,3\r\n"say ""hi""",4\r\n'
    assert read(feed(text)) == (["a\r\nb", "", " é ", 'say "hi"'], None)


def test_csv_rows_that_are_too_short_are_skipped_and_longer_ones_taken() -> None:
    given = feed("x,value\n1,AA\n2\n3,B6,more\n")
    assert read(given) == (["AA", "B6"], None)
    assert given.skipped == 1


def test_a_report_is_sent_whether_or_not_a_text_is_an_integer() -> None:
    given = feed("value\n3\n-4\nabc\n1e3\n" + "9" * 5000 + "\n", integers=True)
    assert read(given) == ([3, -4, -1, -1, -1], None)
    assert given.skipped == 0


def test_csv_lines_are_named_by_where_they_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert read(feed('x,value\n"a\nb",AA\n\n"c\nd"\n')) == (["AA"], None)
    assert capsys.readouterr().err.startswith("line 5 skipped: ")


def test_columns_that_nobody_asks_for_may_have_one_name() -> None:
    assert read(feed("x,value,x\n1,AA,2\n")) == (["AA"], None)


def test_json_lines_are_objects_with_the_right_types() -> None:
    lines = ['{"value": "AA", "who": "ann"}', '{"value": "", "who": ""}', '{"who": "x", "value": "é\\n"}']
    assert read(feed("\n".join(lines), "jsonl", "who")) == (["AA", "", "é\n"], ["ann", "", "x"])
    assert read(feed('{"value": 3}\n{"value": -99999999999999999999}', "jsonl", integers=True)) == (
        [3, -99999999999999999999],
        None,
    )


@pytest.mark.parametrize(
    ("line", "integers"),
    [
        ("broken", False),
        ("[" * 100_000, False),
        ("[1]", False),
        ("null", False),
        ("", False),
        ('{"who": "x"}', False),
        ('{"value": "AA"}', False),
        ('{"value": "AA", "who": 7}', False),
    ],
)
def test_json_lines_of_another_kind_are_skipped(line: str, integers: bool) -> None:
    good = '{"value": 1, "who": "ann"}' if integers else '{"value": "AA", "who": "ann"}'
    given = feed(f"{good}\n{line}\n{good}\n", "jsonl", "who", integers)
    assert read(given)[1] == ["ann", "ann"]
    assert given.skipped == 1


def test_a_value_of_another_type_is_sent_as_an_unknown_one() -> None:
    """Whether a report leaves must not depend on what its value is."""
    lines = ['{"value": null}', '{"value": 1}', '{"value": true}', '{"value": ["AA"]}']
    assert read(feed("\n".join(lines), "jsonl")) == (["null", "1", "true", '["AA"]'], None)
    lines += ['{"value": "1"}', '{"value": 1.0}']
    assert read(feed("\n".join(lines), "jsonl", integers=True)) == ([-1, 1, -1, -1, -1, -1], None)


def test_few_bad_lines_are_named_and_many_counted(capsys: pytest.CaptureFixture[str]) -> None:
    given = feed('{"value": "AA"}\n' + f"{CANARY}\n" * 7, "jsonl")
    assert read(given) == (["AA"], None)
    assert given.skipped == 7
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        f"line {number} skipped: it lacks a field, or one is of the wrong type" for number in range(2, 7)
    ]


@pytest.mark.parametrize(
    ("text", "layout", "said"),
    [
        (f"{CANARY}\nx\n", "csv", "the input has no column 'value'; its first line must name the columns"),
        ("", "csv", "the input has no column 'value'; its first line must name the columns"),
        (f"value\n{CANARY}".encode() + b"\xff\n", "csv", "the input must be UTF-8, and is not"),
        (CANARY.encode() + b"\xff\n", "jsonl", "the input must be UTF-8, and is not"),
        (
            f"value\nAA\n{CANARY * 20_000}\n",
            "csv",
            "line 3 of the input is no CSV: field larger than field limit (131072)",
        ),
        (
            f'value\nAA\n\n"a\nb"\n"{CANARY}\nBB\nCC\n',
            "csv",
            "line 6 of the input is no CSV: unexpected end of data",
        ),
        (f'"value\n{CANARY}\n', "csv", "line 1 of the input is no CSV: unexpected end of data"),
        (f'value\n"AA"{CANARY}\n', "csv", "line 2 of the input is no CSV: ',' expected after '\"'"),
        (f"value,x,value\n{CANARY},1,2\n", "csv", "the input has 2 columns 'value'; rename all but one"),
        (
            f'{{"val": "{CANARY}"}}\n',
            "jsonl",
            "no line of the input can be used; is 'value' the right field?",
        ),
        (f"x,value\n{CANARY}\n", "csv", "no line of the input can be used; is 'value' the right field?"),
    ],
)
def test_an_input_of_no_use_is_refused_without_a_word_of_it(
    text: str | bytes, layout: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FeedError) as caught:
        read(feed(text, layout))
    assert str(caught.value) == said
    assert CANARY not in capsys.readouterr().err
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_an_endless_line_is_refused_before_it_fills_the_memory(layout: str) -> None:
    first = b"value\n" if layout == "csv" else b'{"value": "AA"}\n'
    endless = io.BufferedReader(Endless(first))
    with pytest.raises(
        FeedError, match=r"^line 2 of the input must have at most 1048576 characters, got more$"
    ):
        read(Feed(endless, layout, "value", None, False))


class Endless(io.RawIOBase):
    """A first line, and then zeros for ever."""

    def __init__(self, first: bytes) -> None:
        self._first = first

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        given, self._first = self._first or bytes(len(buffer)), b""
        buffer[: len(given)] = given
        return len(given)


def test_a_column_of_clients_must_be_there() -> None:
    with pytest.raises(FeedError, match=r"^the input has no column 'client'; its first line must name"):
        read(feed("value\nAA\n", clients="client"))


def test_a_device_that_fails_is_told() -> None:
    class Failing(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _: object) -> int:
            raise OSError(5, "Input/output error")

    given = Feed(io.BufferedReader(Failing()), "jsonl", "value", None, False)
    with pytest.raises(FeedError, match=r"^the input cannot be read: Input/output error$"):
        read(given)


def test_an_input_without_lines_is_no_error() -> None:
    assert read(feed("value\n")) == ([], None)
    assert read(feed("", "jsonl")) == ([], None)


def test_batches_end_when_full_or_when_a_second_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "value\n" + "AA\n" * 25_000
    assert [len(values) for values, _ in feed(lines).batches()] == [10_000, 10_000, 5_000]
    monkeypatch.setattr(feed_module, "BATCH_SECONDS", 0)
    assert [len(values) for values, _ in feed("value\n" + "AA\n" * 3).batches()] == [1, 1, 1]
