"""A producer reads an edge's list, checks its signature if a key is configured, and names what differs."""

import json
from base64 import b64decode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.config.file import load
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import parse_signing_key
from deniable.producers.transport.edge.collection_list import (
    CollectionListError,
    WrongKeyError,
    edge_disagreements,
    read_list,
)
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS

VECTOR = json.loads((VECTORS / "collection_list.json").read_text())
KEY = parse_signing_key(VECTOR["signing_key"].encode())
RAW_KEY = b64decode(KEY.public_key)
BODY = VECTOR["body"].encode()


@pytest.fixture
def loaded(tmp_path):
    path = tmp_path / "deniable.yaml"
    path.write_text(VECTOR["file"])
    return load(path, environment={})


def test_the_edges_own_file_agrees(loaded):
    listed = read_list(BODY, RAW_KEY)
    assert listed.keys() == {each.name for each in loaded.collections if not each.canary}
    assert edge_disagreements(loaded.collections, listed) == {}


def test_each_collection_that_differs_or_is_absent_is_named(loaded, pin_messages: PinMessages) -> None:
    """The whole difference is named, thresholds included, which the list has as text."""
    shown = [each for each in loaded.collections if not each.canary]
    others = [replace(each, window_seconds=2 * each.window_seconds) for each in shown]
    found = edge_disagreements(others, read_list(BODY, None))
    assert found.keys() == {each.name for each in shown}
    assert all("window_seconds" in str(each) and "threshold" not in str(each) for each in found.values())
    (absent,) = edge_disagreements([replace(shown[0], name="absent")], read_list(BODY, None)).values()
    pin_messages(
        {
            "a collection has another window": lambda: str(found[shown[0].name]),
            "the edge has no such collection": lambda: str(absent),
        }
    )


def test_changed_list_or_other_key_is_refused(loaded, pin_messages: PinMessages) -> None:
    with pytest.raises(WrongKeyError):
        read_list(BODY, bytes(32))
    answer = json.loads(BODY)
    answer["signed"] = answer["signed"].replace('"revision":', '"revision":1')
    changed = json.dumps(answer).encode()
    assert read_list(changed, None)
    later = collection_list(loaded.revision, loaded.allowances, 10, KEY).body.replace(
        b'\\"format\\":1', b'\\"format\\":2'
    )
    pin_messages(
        {
            "the key is another one": lambda: read_list(BODY, bytes(32)),
            "the list was changed": lambda: read_list(changed, RAW_KEY),
            "the list is of a later version": lambda: read_list(later, None),
            "it is no list": lambda: read_list(b"<html>", None),
        }
    )


@given(st.binary(max_size=80) | st.sampled_from(range(len(BODY))).map(lambda end: BODY[:end]))
def test_other_bytes_raise_the_one_error(body):
    for key in (None, RAW_KEY):
        with pytest.raises(CollectionListError):
            read_list(body, key)
