"""Records of an input, and how to read them from JSON lines. Messages never contain their text."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from deploy.produce.input.lines import LinePart, Lines

NO_OBJECT = "it is not a JSON object"
NO_UTF8 = "it is not UTF-8"
TOO_DEEP = "it is nested too deep"


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record, a bad line, or a piece of a skipped line.

    Parameters
    ----------
    lines : of the input that it consists of.
    fields : by name; None if there can be none, as in a header.
    fault : what is wrong with the line; empty if nothing is.
    is_whole : whether the line is complete.
    """

    lines: Sequence[bytes]
    fields: Mapping[str, Any] | None
    fault: str = ""
    is_whole: bool = True


def passed(part: LinePart) -> InputRecord:
    """Return the record of a piece of a skipped line."""
    return InputRecord([part.data], None, part.fault, part.is_last)


def json_records(lines: Lines) -> Iterator[InputRecord | None]:
    """Yield a record for each line; None while the next line has not arrived."""
    while (line := lines.take()) != b"":
        if line is None:
            yield None
        else:
            yield passed(line) if isinstance(line, LinePart) else _json_record(line)


def _json_record(line: bytes) -> InputRecord:
    try:
        found = _json(line.removeprefix(BOM_UTF8))
    except UnicodeDecodeError:
        return InputRecord([line], None, NO_UTF8)
    except RecursionError:
        return InputRecord([line], None, TOO_DEEP)
    except ValueError:
        return InputRecord([line], None, NO_OBJECT)
    return InputRecord([line], found) if isinstance(found, dict) else InputRecord([line], None, NO_OBJECT)


def _json(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        # msgspec refuses numbers beyond floats and lone surrogates; whether a line is used must not depend on
        # its value.
        return json.loads(line.decode(), parse_int=float)
