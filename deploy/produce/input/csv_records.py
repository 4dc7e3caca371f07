"""Read CSV records. Messages never contain their text."""

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from deploy.produce.input.json_lines import NO_UTF8, InputRecord, passed
from deploy.produce.input.lines import LONGEST_LINE, LinePart, Lines
from deploy.produce.input.source import FeedError

NO_UTF8_RECORD = "it begins a record that is not UTF-8"
TOO_LONG_RECORD = f"it begins a record of more than {LONGEST_LINE} bytes; is a quote not closed?"


class CsvRecords:
    """Reads CSV records; the first names the columns. A field may contain line ends.

    If a line begins no valid record, only this line is skipped: the next line may begin one. An unclosed
    quote is detected once the record would exceed the longest line, or at the end of the input; the text
    after the quote waits until then.

    An empty line is a record with one empty field, as in RFC 4180: a value if there is only one column.

    Parameters
    ----------
    wanted : names of the columns to read; each must occur once.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._columns: Mapping[str, int] = {}  # empty before the header is read
        self._width = 0  # columns of the header
        self._empty: Sequence[str] = []  # cells of an empty line

    def read_header(self, lines: Lines) -> None:
        """Read only the header, when an input is resumed."""
        next(self.records(lines))

    def records(self, lines: Lines) -> Iterator[InputRecord | None]:
        """Yield the header, unless it was read before, then the records; None like `json_records`.

        Raises
        ------
        FeedError if the header lacks a column.
        """
        for row in _rows(lines):
            if row is None:
                yield None
            elif not self._columns:
                self._read_columns(row)
                yield InputRecord(row.lines, None)
            else:
                yield row if isinstance(row, InputRecord) else self._record(row)
        if not self._columns:
            raise FeedError("the input is empty; its first line must name the columns")

    def _read_columns(self, row: "_Row | InputRecord") -> None:
        if isinstance(row, InputRecord):
            raise FeedError(f"the first line of the input must name the columns: {row.fault}")
        header = row.cells
        # Before any guess, which would quote an object that resembles the name.
        is_json = bool(header) and header[0].lstrip().startswith(("{", "["))
        for name in self._wanted:
            if name not in header:
                if is_json:
                    raise FeedError(f"the input has no column '{name}'; for JSON lines give --format jsonl")
                near = get_close_matches(name, header, 1)
                guess = f"; did you mean '{near[0]}'?" if near else "; its first line must name the columns"
                raise FeedError(f"the input has no column '{name}'{guess}")
            if header.count(name) > 1:
                raise FeedError(f"the input has {header.count(name)} columns '{name}'; rename all but one")
        self._columns = {name: header.index(name) for name in self._wanted}
        self._width = len(header)
        self._empty = [""] if len(header) == 1 else []

    def _record(self, row: "_Row") -> InputRecord:
        cells = row.cells or self._empty
        if len(cells) > self._width:  # as after a decimal comma: which of them is the value is unknown
            fault = f"it has {len(cells)} fields, the first line {self._width}"
            return InputRecord(row.lines, None, fault)
        return InputRecord(row.lines, {name: cells[i] for name, i in self._columns.items() if i < len(cells)})


@dataclass(frozen=True, slots=True)
class _Row:
    lines: list[bytes]
    cells: list[str]


class _NotYetError(Exception):
    """Raised when the end of the record has not arrived yet."""


class _TooLongError(Exception):
    """Raised when the record exceeds the longest line."""


def _rows(lines: Lines) -> Iterator[_Row | InputRecord | None]:
    while (line := lines.take()) != b"":
        if line is None:
            yield None
        else:
            yield passed(line) if isinstance(line, LinePart) else _row(line, lines)


def _row(first: bytes, lines: Lines) -> _Row | InputRecord | None:
    """Return the row that begins with this line, or its fault; None if its end has not arrived yet."""
    taken = [first]
    try:
        return _Row(taken, _cells(_texts(taken, lines)))
    except _NotYetError:
        lines.put_back(taken)
        return None
    except UnicodeDecodeError:
        fault = NO_UTF8 if len(taken) == 1 else NO_UTF8_RECORD
    except _TooLongError:
        fault = TOO_LONG_RECORD
    except csv.Error as error:  # its message never quotes the input
        fault = f"it is not CSV: {error}"
    lines.put_back(taken[1:])
    return InputRecord(taken[:1], None, fault)


def _cells(texts: Iterator[str]) -> list[str]:
    """Read the next record's cells; each may be as long as a line, since a lower limit would skip values."""
    usual = csv.field_size_limit(LONGEST_LINE)
    try:
        return next(csv.reader(texts, strict=True))
    finally:
        csv.field_size_limit(usual)


def _texts(taken: list[bytes], lines: Lines) -> Iterator[str]:
    """Yield lines as csv.reader asks for them, which it does only up to the end of a record."""
    size = 0
    while True:
        yield taken[-1].removeprefix(BOM_UTF8).decode()
        size += len(taken[-1])
        line = lines.take()
        if line is None:
            raise _NotYetError
        if line == b"":
            return
        if isinstance(line, LinePart) or size + len(line) > LONGEST_LINE:
            lines.put_back([line])
            raise _TooLongError
        taken.append(line)
