"""The ranges in messages are those that the checks enforce."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from deniable.config.entries import KRREntry
from deniable.config.file import CollectionFileError, load
from deniable.config.section import members, nested
from deniable.config.sections import EdgeSection, File, KafkaSection, ProducerSection, RelaySection
from deniable.config.words import words_of

COLLECTION = {
    "name": "plan",
    "mechanism": "k-rr",
    "values": "[a, b]",
    "epsilon": "1",
    "window_seconds": "60",
    "grace_seconds": "100000",
    "budget": "none",
}
SECTIONS = {"kafka": KafkaSection, "producer": ProducerSection, "edge": EdgeSection, "relay": RelaySection}
OF_RELAY = (
    "batch_reports", "shuffle_reports", "window_uploads", "idle_seconds", "delivery_seconds", "forged_share",
)  # fmt: skip
ENTRY = [
    *("window_seconds", "grace_seconds", "retention_seconds", "minimum_reports", "window_packs"),
    *("change_alarms_a_year", "reports_per_window", "size", "epsilon"),
]


def document(field: str, value: str) -> str:
    """A collection file with this field set to this value."""
    fields = COLLECTION | ({field: value} if field in ENTRY else {})
    if field == "size":
        del fields["values"]
    lines = ["collections:", "  - {" + ", ".join(f"{key}: {text}" for key, text in fields.items()) + "}"]
    for section, kind in SECTIONS.items():
        if field in kind.__struct_fields__:
            lines.append(f"{section}: {{{field}: {value}}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "field",
    [
        *ENTRY,
        *("partitions", "replication_factor"),
        *("pack_reports", "pack_seconds", "outbox_bytes", "block_milliseconds"),
        *("uploads_per_minute", "trusted_proxies", "max_age_seconds"),
        *OF_RELAY,
    ],
)
def test_stated_range_is_the_enforced_one(tmp_path: Path, field: str) -> None:
    kinds = (KRREntry, *SECTIONS.values())
    types = {each.name: each.type for kind in kinds for each in msgspec.structs.fields(kind)}
    words = words_of(types[field])
    _lowest, highest = re.search(r"[\[(]([\d.]+), ([\d.]+)\]$", words).groups()  # type: ignore[union-attr]
    file = tmp_path / "deniable.yaml"
    file.write_text(document(field, str(int(highest) + 1)))
    with pytest.raises(CollectionFileError, match=re.escape(f", {highest}]")):
        load(file, environment={})
    file.write_text(document(field, highest))
    load(file, environment={})


def test_numbers_without_a_range_are_limited_by_other_fields() -> None:
    open_ended = {
        field.name
        for section in nested(File)
        for field in msgspec.structs.fields(section)
        for info in map(inspect.type_info, members(field.type))
        if _is_number(info) and not re.search(r"[\[(].+, .+[\])]|of at least|from 1 to", words_of(field.type))
    }
    assert open_ended == {"minimum", "maximum"}


def _is_number(info: inspect.Type) -> bool:
    return isinstance(
        info.type if isinstance(info, inspect.Metadata) else info, inspect.IntType | inspect.FloatType
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int, "an integer"),
        (Annotated[int, Meta(ge=2)] | None, "an integer of at least 2"),
        (Annotated[int, Meta(ge=1, lt=5)], "an integer in [1, 5)"),
        (Annotated[int, Meta(ge=8, le=64, multiple_of=8)], "a multiple of 8 in [8, 64]"),
        (Annotated[float, Meta(gt=0)], "a number in (0, inf)"),
        (Annotated[float, Meta(gt=0, le=16)], "a number in (0, 16]"),
        (Annotated[float, Meta(gt=0, description="a number below q")], "a number below q"),
        (Literal["wait", "drop"] | None, "one of wait, drop"),
        (list[str], "a list of text"),
        (dict[str, str] | None, "a mapping of text to text"),
        (bool, "true or false"),
    ],
)
def test_words_say_the_constraints_of_a_type(kind: Any, words: str) -> None:
    assert words_of(kind) == words
