"""A collection file to change and to load."""

import re
from pathlib import Path

import pytest

from deniable.config.file import CollectionFileError, Configuration, load

KRR_ENTRY = """\
  - {name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], other: false, epsilon: 1.0986,
     window_seconds: 60, grace_seconds: 30, budget: none}
"""
RAPPOR_ENTRY = """\
  - {name: destination, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,
     candidates: [JFK, LAX], window_seconds: 60, grace_seconds: 30, budget: none}
"""
HEAD = "revision: 1\ncollections:\n"
WHOLE = HEAD + KRR_ENTRY + RAPPOR_ENTRY


def read(file: Path, text: str, **environment: str) -> Configuration:
    file.write_text(text, encoding="utf-8")
    return load(file, environment=environment)


def refusal(file: Path, text: str, **environment: str) -> str:
    """Return the error message, without the file's name at its beginning."""
    with pytest.raises(CollectionFileError) as caught:
        read(file, text, **environment)
    name, _, message = str(caught.value).partition(": ")
    assert re.fullmatch(rf"{re.escape(str(file))}(:[1-9]\d*)?", name)
    return message
