"""Records of CSV. No message holds any of their text."""

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deploy.produce.input.json_lines import NO_UTF8, InputRecord, passed
from deploy.produce.input.lines import LONGEST_LINE, LinePart, Lines
from deploy.produce.input.source import FeedError

NO_UTF8_RECORD = "it begins a record that is not UTF-8"
TOO_LONG_RECORD = f"it begins a record of more than {LONGEST_LINE} bytes; is a quote not closed?"


class CsvRecords:
    """Records of CSV whose first one names the columns. A field may hold line ends.

    Where a line begins no record, it alone is passed over: the next line may begin one. That a quote is not
    closed is known once the record would be longer than a line may be, or at the end of the input; what
    follows the quote waits until then.

    An empty line is a record with one empty field, as in RFC 4180: where there is one column, a value.

    Parameters
    ----------
    wanted : names of the columns to look for; each must be there once.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._columns: Mapping[str, int] = {}  # none before the header was read
        self._empty: Sequence[str] = []  # cells of an empty line

    def read_header(self, lines: Lines) -> None:
        """Read the header alone, of an input of which it was read before."""
        next(self.records(lines))

    def records(self, lines: Lines) -> Iterator[InputRecord | None]:
        """The header, unless it was read before, then the records; None as `json_records`.

        Raises
        ------
        FeedError if the header does not name the columns.
        """
        for row in _rows(lines):
            if row is None:
                yield None
            elif not self._columns:
                self._read_columns(row)
                yield InputRecord(row.lines, None)
            else:
                yield row if isinstance(row, InputRecord) else InputRecord(row.lines, self._fields(row.cells))
        if not self._columns:
            self._read_columns(_Row([], []))

    def _read_columns(self, row: "_Row | InputRecord") -> None:
        if isinstance(row, InputRecord):
            raise FeedError(f"the first line of the input must name the columns: {row.fault}")
        header = row.cells
        for name in self._wanted:
            if name not in header:
                raise FeedError(f"the input has no column '{name}'; its first line must name the columns")
            if header.count(name) > 1:
                raise FeedError(f"the input has {header.count(name)} columns '{name}'; rename all but one")
        self._columns = {name: header.index(name) for name in self._wanted}
        self._empty = [""] if len(header) == 1 else []

    def _fields(self, cells: Sequence[str]) -> Mapping[str, str]:
        cells = cells or self._empty
        return {name: cells[i] for name, i in self._columns.items() if i < len(cells)}


@dataclass(frozen=True, slots=True)
class _Row:
    lines: list[bytes]
    cells: list[str]


class _NotYetError(Exception):
    """The end of the record has not come."""


class _TooLongError(Exception):
    """The record is longer than a line may be."""


def _rows(lines: Lines) -> Iterator[_Row | InputRecord | None]:
    while (line := lines.take()) != b"":
        if line is None:
            yield None
        else:
            yield passed(line) if isinstance(line, LinePart) else _row(line, lines)


def _row(first: bytes, lines: Lines) -> _Row | InputRecord | None:
    """The row that begins with this line, or what is wrong with it; None where its end has not come yet."""
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
    except csv.Error as error:  # its words are the module's own, none of the input's
        fault = f"it is no CSV: {error}"
    lines.put_back(taken[1:])
    return InputRecord(taken[:1], None, fault)


def _cells(texts: Iterator[str]) -> list[str]:
    """Cells of the next record, as long as a line may be: a lower limit would leave out values."""
    usual = csv.field_size_limit(LONGEST_LINE)
    try:
        return next(csv.reader(texts, strict=True))
    finally:
        csv.field_size_limit(usual)


def _texts(taken: list[bytes], lines: Lines) -> Iterator[str]:
    """Lines as csv.reader asks for them, which it does no further than a record goes."""
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
