"""Records of an input, and those of JSON lines. No message holds any of their text."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from deploy.produce.input.lines import LinePart, Lines

NO_OBJECT = "it is no JSON object"
NO_UTF8 = "it is not UTF-8"
TOO_DEEP = "it is nested too deep"


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record, a line that is none, or a piece of a line that is passed over.

    Parameters
    ----------
    lines : of the input, which it is made of.
    fields : by name, those that it has; None where none are meant to be there, as in a header.
    fault : what is wrong with the line; empty when nothing is.
    is_whole : whether nothing of the line is to come.
    """

    lines: Sequence[bytes]
    fields: Mapping[str, Any] | None
    fault: str = ""
    is_whole: bool = True


def passed(part: LinePart) -> InputRecord:
    """A piece of a line that is passed over."""
    return InputRecord([part.data], None, part.fault, part.is_last)


def json_records(lines: Lines) -> Iterator[InputRecord | None]:
    """One from each line; None where the next has not come yet."""
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
        # It refuses numbers beyond floats and lone surrogates: a value is no reason to leave a line out.
        return json.loads(line.decode(), parse_int=float)
