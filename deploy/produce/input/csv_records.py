"""Read CSV records. Messages never contain their text.

Whatever is wrong within a cell, such as bytes that are not UTF-8, a quote or a lone carriage return, its line
is used. A record with another number of cells than the header, or with a quote that does not close, stops the
run: a value may be the cause, and then another cell would be taken for the client.
"""

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from deniable.deploy.cli.input_text import printable
from deniable.deploy.produce.input.json_lines import InputRecord
from deniable.deploy.produce.input.lines import LONGEST_LINE, BrokenLineError, LinePart, Lines, too_long
from deniable.deploy.produce.input.source import FeedError
from deniable.protocol.words import number_of

TO_UTF8 = "convert the input first, such as by iconv -f LATIN1 -t UTF-8"
REPLACEMENT = "\ufffd"  # of a lone carriage return without quotes
QUOTING = "put a cell with a delimiter, quote or line end in double quotes, and write a quote within it twice"
#: Delimiters that a first line may have instead, in words and as the option has them.
DELIMITERS = {
    ";": ("semicolons", ";"),
    "\t": ("tabs", "\\t"),
    "|": ("vertical bars", "|"),
    ",": ("commas", ","),
}
OPEN_QUOTE = InputRecord((), None)  # of a record whose quote has not closed yet
BROKEN_QUOTES = f"a quote in it does not close, or text follows one that does; {QUOTING}"
_SEPARATOR = re.compile("sep=.", re.IGNORECASE)


class CsvRecords:
    """Reads CSV records; the first names the columns. A field may contain line ends.

    An unclosed quote is detected once text follows a later one, the record exceeds the longest line, or the
    input ends; the lines after the quote wait until then.

    An empty line is a record with one empty field, as in RFC 4180: a value if there is only one column, and
    else skipped, since a value without quotes that contains a line end stops the run before.

    Parameters
    ----------
    wanted : names of the columns to read; each must occur once.
    delimiter : between cells, a character.
    name : of the input in messages.
    """

    def __init__(self, wanted: Sequence[str], delimiter: str = ",", name: str = "the input") -> None:
        self._wanted = wanted
        self._delimiter = delimiter
        self._name = name
        self._columns: Mapping[str, int] = {}  # empty before the header is read
        self._width = 0  # columns of the header
        self._empty: Sequence[str] = []  # cells of an empty line

    def read_header(self, lines: Lines) -> None:
        """Read only the header, when an input is resumed."""
        next(self.records(lines))

    def records(self, lines: Lines) -> Iterator[InputRecord | None]:
        """Yield the header, unless it was read before, then the records; None like `json_records`.

        Yields OPEN_QUOTE instead of None while the last record that arrived has a quote that does not close.

        Raises
        ------
        FeedError if the header lacks a column; BrokenLineError if a value may have caused the shape of a
        record.
        """
        for row in _rows(lines, self._delimiter):
            if row is None or isinstance(row, InputRecord):
                yield row
            elif isinstance(row, LinePart):
                yield InputRecord([row.data], None)
            elif not self._columns:
                self._check_line_ends(row.lines[0])
                self._read_columns(row.cells)
                yield InputRecord(row.lines, None)
            else:
                yield self._record(row)
        if not self._columns:
            raise FeedError(f"{self._name} is empty; its first line must name the columns")

    def _check_line_ends(self, first: bytes) -> None:
        """Raise FeedError if the first line is the whole input since its lines end in carriage returns."""
        if not first.endswith(b"\n") and b"\r" in first.rstrip(b"\r"):
            raise FeedError(
                f"{self._name} has carriage returns alone for line ends; nothing of it was used: convert it "
                "first, such as by tr '\\r' '\\n'"
            )

    def _read_columns(self, header: Sequence[str]) -> None:
        for name in self._wanted:
            if name not in header:
                raise FeedError(f"{self._name} has no column '{printable(name)}'; {self._remedy(header)}")
            if header.count(name) > 1:
                raise FeedError(
                    f"{self._name} has {header.count(name)} columns '{printable(name)}'; rename all but one"
                )
        self._columns = {name: header.index(name) for name in self._wanted}
        self._width = len(header)
        self._empty = [""] if len(header) == 1 else []

    def _remedy(self, header: Sequence[str]) -> str:
        """Say what to do about a missing column; of a file without a header nothing is said: it is data."""
        if header and header[0].lstrip().startswith(("{", "[")):
            return "for JSON lines give --format jsonl"
        if _SEPARATOR.fullmatch(self._delimiter.join(header)):
            return "its first line is one of Excel, sep=: delete it, and name that character as --delimiter"
        if {*map(_in_latin1, self._wanted)} <= {*header}:
            return f"the line has bytes that are not UTF-8: {TO_UTF8}"
        for delimiter, (what, option) in DELIMITERS.items():
            cells = self._delimiter.join(header).split(delimiter)
            if {*self._wanted} <= {cell.strip('"') for cell in cells}:
                return f"the line has {what}: give --delimiter '{option}'"
        return "its first line must name the columns, and the option one of them exactly as it is there"

    def _record(self, row: "_Row") -> InputRecord:
        cells = row.cells or self._empty
        if not cells:  # ignored without a word: a line end at the edge of a value leaves such a line
            return InputRecord(row.lines, None)
        if len(cells) != self._width:  # which of them is the value, and which the client, is unknown
            number = number_of(len(cells), "cell")
            raise BrokenLineError(f"it has {number}, the first line has {self._width}; {QUOTING}")
        return InputRecord(row.lines, {name: cells[index] for name, index in self._columns.items()})


@dataclass(frozen=True, slots=True)
class _Row:
    lines: list[bytes]
    cells: list[str]


class _NotYetError(Exception):
    """Raised when the end of the record has not arrived yet."""


def _rows(lines: Lines, delimiter: str) -> Iterator[_Row | LinePart | InputRecord | None]:
    while (line := lines.take()) != b"":
        yield (
            line if line is None or isinstance(line, LinePart) else _row(line, lines, delimiter) or OPEN_QUOTE
        )


def _row(first: bytes, lines: Lines, delimiter: str) -> _Row | None:
    """Return the row that begins with this line; None if its end has not arrived yet; or BrokenLineError."""
    taken = [first]
    usual = csv.field_size_limit(LONGEST_LINE)
    try:
        return _Row(taken, next(csv.reader(_texts(taken, lines), delimiter=delimiter, strict=True)))
    except _NotYetError:
        lines.put_back(taken)
        return None
    except csv.Error:
        return _Row([first], next(csv.reader(_one_line(first), delimiter=delimiter)))
    finally:
        csv.field_size_limit(usual)


def _texts(taken: list[bytes], lines: Lines) -> Iterator[str]:
    """Yield lines as csv.reader asks for them, which it does only up to the end of a record."""
    size = 0
    while True:
        yield _text(taken[-1])
        size += len(taken[-1])
        line = lines.take()
        if line is None:
            raise _NotYetError
        if not line:
            return
        if size + len(line) > LONGEST_LINE:
            raise BrokenLineError(too_long())
        taken.append(cast("bytes", line))  # a LinePart is the first of an input


def _one_line(line: bytes) -> Iterator[str]:
    """Yield a line that is not strictly CSV: if its quotes close, each cell still has its place."""
    yield _text(line).rstrip("\r\n").replace("\r", REPLACEMENT)
    raise BrokenLineError(BROKEN_QUOTES)


def _in_latin1(name: str) -> str:
    """Return a name as it is read from an input in Latin-1."""
    return name.encode("latin-1", "replace").decode("utf-8", "replace")


def _text(line: bytes) -> str:
    return line.removeprefix(BOM_UTF8).decode("utf-8", "replace")
