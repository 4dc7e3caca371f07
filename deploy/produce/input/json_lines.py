"""Records of an input, and how to read them from JSON lines. Messages never contain their text.

Whatever a value is, its line is used: a value that is not JSON is read as null, and the other fields are not
affected. A line that begins an object and cannot be divided into fields stops the run, since a value may be
the cause, such as a quote without a backslash. A line that begins no object is skipped: the rest of a value
with a line end is never reached.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from deniable.deploy.produce.input.lines import BrokenLineError, LinePart, Lines

NO_OBJECT = "it is not a JSON object"
ARRAY = "it begins a JSON array; write one object a line, such as by jq -c '.[]'"
BROKEN_OBJECT = (
    'it begins a JSON object and is none; write a quote within a text as \\", a line end as \\n, and one '
    "object a line, as JSON libraries do"
)
LONGEST_INTEGER = 400  # characters; no float is as large as a longer one
OPENING, CLOSING = ("{", "["), ("}", "]")

# A text, one that does not end, or punctuation.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]:,]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record, a bad line, or a piece of a line that an earlier run took.

    Parameters
    ----------
    lines : of the input that it consists of.
    fields : by name; None if there can be none, as in a header.
    fault : why the line is skipped; empty if it is not. No value causes it.
    """

    lines: Sequence[bytes]
    fields: Mapping[str, Any] | None
    fault: str = ""


def field_of(fields: Mapping[str, Any], path: str) -> Any:
    """Return the field of this name, else that of this dotted path into objects; None without either."""
    if path in fields:
        return fields[path]
    found: Any = fields
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def json_records(lines: Lines) -> Iterator[InputRecord | None]:
    """Yield a record for each line; None while the next line has not arrived.

    Raises
    ------
    BrokenLineError if a value may have caused the shape of a line.
    """
    while (line := lines.take()) != b"":
        if line is None:
            yield None
        else:
            yield InputRecord([line.data], None) if isinstance(line, LinePart) else _json_record(line)


def _json_record(line: bytes) -> InputRecord:
    data = line.removeprefix(BOM_UTF8)
    if not data.strip():  # ignored, as in CSV
        return InputRecord([line], None)
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = data.decode("utf-8", "replace").strip()
        found = _fields(text) if text.startswith("{") else None
    if isinstance(found, dict):
        return InputRecord([line], found)
    return InputRecord([line], None, ARRAY if data.lstrip().startswith(b"[") else NO_OBJECT)


def _fields(text: str) -> dict[str, Any]:
    """Divide the text of an object into fields, and read each value for itself.

    Parameters
    ----------
    text : begins with a brace; white space around it is removed.

    Raises
    ------
    BrokenLineError if it cannot be divided.
    """
    fields: dict[str, Any] = {}
    depth, start, name = 0, 1, None
    for token in _TOKEN.finditer(text):
        mark = token[0]
        depth += (mark in OPENING) - (mark in CLOSING)
        if mark == '"' or (depth == 0 and token.end() < len(text)):
            break
        if depth == 1 and name is None and mark == ":":
            name, start = _name(text[start : token.start()]), token.end()
        elif name is not None and (depth == 0 or (depth == 1 and mark == ",")):
            fields[name] = _value(text[start : token.start()])
            name, start = None, token.end()
        elif depth == 0 and text[start : token.start()].strip():
            break
        if depth == 0:
            return fields
    raise BrokenLineError(BROKEN_OBJECT)


def _name(text: str) -> str:
    with suppress(ValueError):
        if isinstance(name := json.loads(text, strict=False), str):
            return name
    raise BrokenLineError(BROKEN_OBJECT)


def _value(text: str) -> Any:
    """Return a value; None, as of null, if it is not JSON or nested too deep."""
    try:
        return json.loads(text, strict=False, parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)
