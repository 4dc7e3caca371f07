"""Files with random mistakes: each is named, nothing that follows from one is, and no secret is shown."""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from deniable.config.entries import Entry
from deniable.config.file import CollectionFileError, load
from deniable.config.section import Section, list_in, sections_in
from deniable.config.sections import File
from deniable.config.walk import YamlPath, path_words

FILE = Path(tempfile.mkdtemp(prefix="wrong-")) / "deniable.yaml"
SECRET = "hunter2"
TIMES = {"window_seconds": 60, "grace_seconds": 30}
NOISE = {"epsilon_inf": 4, "epsilon_one": 2, "memoize": True}
HASHED = {"hash_functions": 1000, "hash_buckets": 5, "candidates": ["A", "B"]}
FIELDS = [{"name": "a", "values": ["x", "y"], "other": True}, {"name": "b", "values": ["z"], "other": True}]
BUDGET = {"epsilon": 8, "delta": 1e-6, "period_seconds": 86400, "values": "any"}
ENTRIES = [
    {"mechanism": "k-rr", "values": ["A", "B"], "other": False, "epsilon": 1, "publish": "all"},
    {"mechanism": "k-rr-longitudinal", "size": 9, "epsilon_inf": 2, "epsilon_one": 1, "minimum_reports": 7},
    {"mechanism": "k-rr-pair", "fields": FIELDS, "epsilon": 2},
    {"mechanism": "one-hot-pair", "fields": FIELDS, "epsilon": 2},
    {"mechanism": "local-hash", "epsilon": 2, **HASHED},
    {"mechanism": "local-hash-longitudinal", "epsilon_inf": 4, "epsilon_one": 1, **HASHED},
    {"mechanism": "prefix-tree", "epsilon": 4, "lengths": [1, 2], "grow": {"windows": 3, "rate": 0.1}},
    {"mechanism": "rappor", "bits": 64, "hashes": 2, "cohorts": 4, "candidates": ["A"], **NOISE},
    {"mechanism": "rappor-one-hot", "values": ["A", "B"], "f": 0.5, "p": 0.5, "q": 0.75},
    {"mechanism": "rappor-k-hot", "values": ["A", "B"], "hot": 1, **NOISE},
    {"mechanism": "subset-selection", "values": ["A", "B", "C"], "epsilon": 1},
    {"mechanism": "number", "minimum": 0, "maximum": 1, "steps": 8, "epsilon": 1},
]
SECTIONS: dict[str, Any] = {
    "revision": 3,
    "kafka": {
        "bootstrap_servers": "kafka.example:9093",
        "topic_prefix": "x-",
        "partitions": 3,
        "checkpoint_seconds": 0.5,
        "security": {"ca_file": "ca.pem", "username": "u", "password_file": "p"},
    },
    "producer": {
        "data_dir": "data",
        "secret_file": "secret",
        "pack_seconds": 2,
        "deliver": "https://edge.example",
        "edge_ca_file": "ca.pem",
        "budget_store": {"url": "postgresql://u@127.0.0.1/b", "when_away": "drop"},
    },
    "edge": {"allow_origins": ["https://shop.example"], "certificate_file": "c", "key_file": "k"},
    "relay": {"delivery_seconds": 20, "forged_share": 0.25},
}
#: Beginnings of messages that show no value.
HIDDEN = ("kafka: ", "kafka.security", "producer: ", "producer.budget_store")
WRONG_VALUES = [
    *(None, True, -1, 0, 2.5, 1e300, 10**30),
    *("", "é", "\ud800", SECRET),
    *([], [1, "a"], [SECRET], {}, {"a": 1}),
]


def leaves(kind: type[Section], value: dict[str, Any], path: YamlPath = ()) -> Iterator[tuple[YamlPath, Any]]:
    """Path and type of each field of a right document."""
    for field in msgspec.structs.fields(kind):
        if field.name in value:
            inner, listed = value[field.name], list_in(field.type)
            yield (*path, field.name), field.type
            if listed is not None and sections_in(listed.item):
                for i, item in enumerate(inner):
                    tags = {each.__struct_config__.tag: each for each in sections_in(listed.item)}
                    yield from leaves(tags[item.get("mechanism")], item, (*path, field.name, i))
            elif isinstance(inner, dict) and (sections := sections_in(field.type)):
                yield from leaves(sections[0], inner, (*path, field.name))


def is_wrong(value: object, kind: Any) -> bool:
    """Whether a value is of another type, or out of range."""
    if isinstance(value, dict) and sections_in(kind):
        return False  # its fields are wrong, not the section
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return True
    return False


def broken(document: dict[str, Any], path: YamlPath, value: object) -> None:
    """Set the value at a path."""
    *above, last = path
    inner: Any = document
    for step in above:
        inner = inner[step]
    inner[last] = value


def refused(document: dict[str, Any]) -> list[str]:
    """Return the messages, without file and line."""
    FILE.write_text(json.dumps(document, indent=1), encoding="utf-8")
    try:
        load(FILE, environment={})
    except CollectionFileError as error:
        return [re.sub(rf"^{re.escape(str(FILE))}(:\d+)?: ", "", line) for line in str(error).splitlines()]
    return []


def right(numbers: Sequence[int]) -> dict[str, Any]:
    """A right document with these of ENTRIES."""
    collections = [
        {"name": f"c{number}", **TIMES, **ENTRIES[number], "budget": BUDGET if number % 2 else "none"}
        for number in numbers
    ]
    whole: dict[str, Any] = json.loads(json.dumps(SECTIONS | {"collections": collections}))
    return whole


def test_the_right_file_is_right() -> None:
    assert refused(right(range(len(ENTRIES)))) == []
    tags = {entry.__struct_config__.tag for entry in get_args(Entry)}
    assert {entry["mechanism"] for entry in ENTRIES} == tags


@given(st.data())
def test_each_wrong_field_is_named_and_nothing_else(data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, len(ENTRIES) - 1), min_size=1, max_size=2, unique=True)
    document = right(data.draw(numbers))
    types = dict(leaves(File, document))
    paths = data.draw(st.lists(st.sampled_from(list(types)), min_size=1, max_size=8, unique=True))
    apart = [path for path in paths if not any(path != other == path[: len(other)] for other in paths)]
    for path in apart:
        values = [value for value in WRONG_VALUES if is_wrong(value, types[path])]
        broken(document, path, data.draw(st.sampled_from(values)))
    messages = refused(document)
    named = {re.sub(r"\[\d+\]$", "", message.partition(": ")[0]) for message in messages}
    assert named == set(map(path_words, apart)), "\n".join(messages)
    assert not [message for message in messages if message.startswith(HIDDEN) and SECRET in message]
