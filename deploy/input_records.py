"""Records of CSV and JSON lines. No message holds any of their text."""

import csv
import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from deploy.input_errors import FeedError
from deploy.input_lines import LONGEST_LINE, Lines

NO_OBJECT = "it is no JSON object"
NO_UTF8 = "it is not UTF-8"


@dataclass(frozen=True, slots=True)
class Record:
    """A record, or a line that is none.

    Parameters
    ----------
    lines : of the input, which it is made of.
    fields : by name, those that it has; None where none are meant to be there: a header, an empty line.
    fault : what is wrong with the line; empty when nothing is.
    """

    lines: Sequence[bytes]
    fields: Mapping[str, Any] | None
    fault: str = ""


def json_records(lines: Lines) -> Iterator[Record | None]:
    """One from each line; None where the next has not come yet."""
    while (line := lines.take()) != b"":
        yield None if line is None else _json_record(line)


def _json_record(line: bytes) -> Record:
    try:
        found = _json(line.removeprefix(BOM_UTF8))
    except UnicodeDecodeError:
        return Record([line], {}, NO_UTF8)
    except (ValueError, RecursionError):
        return Record([line], {}, NO_OBJECT)
    return Record([line], found) if isinstance(found, dict) else Record([line], {}, NO_OBJECT)


def _json(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        # It refuses numbers beyond floats and lone surrogates: a value is no reason to leave a line out.
        return json.loads(line.decode(), parse_int=float)


class CsvRecords:
    """Records of CSV whose first one names the columns. A field may hold line ends.

    Where a line begins no record, it alone is passed over: the next line may begin one.

    Parameters
    ----------
    wanted : names of the columns to look for; each must be there once.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._columns: dict[str, int] | None = None

    def read_header(self, lines: Lines) -> None:
        """Read the header alone, of an input of which it was read before."""
        next(self.records(lines))

    def records(self, lines: Lines) -> Iterator[Record | None]:
        """The header, unless it was read before, then the records; None as `json_records`.

        Raises
        ------
        FeedError if the header does not name the columns.
        """
        for row in _rows(lines):
            if row is None:
                yield None
            elif self._columns is None:
                self._columns = self._find_columns(row.cells, row.fault)
                yield Record(row.lines, None)
            else:
                cells = row.cells
                fields = {name: cells[i] for name, i in self._columns.items() if i < len(cells)}
                yield Record(row.lines, fields if cells or row.fault else None, row.fault)
        if self._columns is None:
            self._find_columns([], "")

    def _find_columns(self, header: list[str], fault: str) -> dict[str, int]:
        if fault:
            raise FeedError(f"the first line of the input must name the columns: {fault}")
        for name in self._wanted:
            if name not in header:
                raise FeedError(f"the input has no column '{name}'; its first line must name the columns")
            if header.count(name) > 1:
                raise FeedError(f"the input has {header.count(name)} columns '{name}'; rename all but one")
        return {name: header.index(name) for name in self._wanted}


@dataclass(frozen=True, slots=True)
class _Row:
    lines: list[bytes]
    cells: list[str]
    fault: str = ""


class _NotYetError(Exception):
    """The end of the record has not come."""


def _rows(lines: Lines) -> Iterator[_Row | None]:
    while True:
        taken: list[bytes] = []
        try:
            cells = _cells(_texts(lines, taken))
        except _NotYetError:
            lines.put_back(taken)
            yield None
        except UnicodeDecodeError:
            lines.put_back(taken[1:])
            yield _Row(taken[:1], [], NO_UTF8)
        except csv.Error as error:  # its words are the module's own, none of the input's
            lines.put_back(taken[1:])
            yield _Row(taken[:1], [], f"it is no CSV: {error}")
        else:
            if cells is None:
                return
            yield _Row(taken, cells)


def _cells(texts: Iterator[str]) -> list[str] | None:
    """Cells of the next record, as long as a line may be: a lower limit would leave out values."""
    usual = csv.field_size_limit(LONGEST_LINE)
    try:
        return next(csv.reader(texts, strict=True), None)
    finally:
        csv.field_size_limit(usual)


def _texts(lines: Lines, taken: list[bytes]) -> Iterator[str]:
    """Lines as csv.reader asks for them, which it does no further than a record goes."""
    while (line := lines.take()) != b"":
        if line is None:
            raise _NotYetError
        taken.append(line)
        yield line.removeprefix(BOM_UTF8).decode()
