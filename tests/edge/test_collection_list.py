"""The list of collections: its vector, its signature, and what it leaves out."""

import json
from base64 import b64decode

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from deniable.config.file import load
from deniable.config.settings.allowance import Allowance
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import parse_signing_key
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from tests.support.paths import VECTORS

VECTOR = json.loads((VECTORS / "collection_list.json").read_text())


@pytest.fixture
def loaded(tmp_path):
    path = tmp_path / "deniable.yaml"
    path.write_text(VECTOR["file"])
    return load(path, environment={})


@pytest.fixture
def built(loaded):
    key = parse_signing_key(VECTOR["signing_key"].encode())
    return collection_list(loaded.revision, loaded.allowances, VECTOR["delivery_seconds"], key)


def test_vector(built):
    assert built.body.decode() == VECTOR["body"]
    assert built.etag == VECTOR["etag"]


def test_signature_verifies_and_covers_the_text():
    answer = json.loads(VECTOR["body"])
    assert answer["signed"] == VECTOR["signed"]
    key = Ed25519PublicKey.from_public_bytes(b64decode(answer["public_key"], validate=True))
    signature = b64decode(answer["signature"], validate=True)
    message = b"deniable-collections-1\n" + answer["signed"].encode()
    key.verify(signature, message)
    with pytest.raises(InvalidSignature):
        key.verify(signature, message.replace(b'"revision":7', b'"revision":8'))


def test_entries_state_the_fields_of_the_file(loaded, built):
    """Thresholds are text; a canary is missing; the grace is that in which uploads are taken."""
    entries = json.loads(json.loads(built.body)["signed"])["collections"]
    asked = [each for each in loaded.allowances if not each.collection.canary]
    assert len(asked) == len(loaded.allowances) - 1
    assert [each["name"] for each in entries] == [each.collection.name for each in asked]
    for entry, allowance in zip(entries, asked, strict=True):
        collection = allowance.collection
        assert int(entry["fingerprint"], 16) == collection.fingerprint
        assert entry["grace_seconds"] == collection.grace_seconds - 10
        for name, value in collection.mechanism.parameters().items():
            is_text = isinstance(entry["mechanism"][name], str)
            assert (str(value) if is_text else value) == entry["mechanism"][name]
            assert is_text == (name.endswith("threshold") or name == "kind")


def test_fields_of_a_pair_are_listed_and_of_nothing_else(built):
    """Labels of pairs could be cut in two ways: 'a / b' and 'c', or 'a' and 'b / c'."""
    fields = (Field("x", ("a", "b / c"), True), Field("y", ("d",), True))
    pair = Collection("p", PairKRR.from_epsilons(3, 2, 1.0, 1.0), pair_labels(*fields), fields=fields)
    key = parse_signing_key(VECTOR["signing_key"].encode())
    answer = collection_list(1, [Allowance(pair, None)], 10, key).body
    (entry,) = json.loads(json.loads(answer)["signed"])["collections"]
    assert entry["fields"] == [{"values": ["a", "b / c"], "other": True}, {"values": ["d"], "other": True}]
    assert len(entry["values"]) == 6
    assert all("fields" not in each for each in json.loads(json.loads(built.body)["signed"])["collections"])


def test_only_memoized_collections_bound_all_reports(built):
    entries = json.loads(json.loads(built.body)["signed"])["collections"]
    bounded = {each["name"] for each in entries if each["epsilon_inf"] is not None}
    assert bounded == {each["name"] for each in entries if each["memoized"]} == {"tariff", "homepage", "plan"}
    unlimited = {each["name"] for each in entries if each["budget"] and each["budget"]["reports"] is None}
    assert unlimited == {"homepage", "plan"}  # their budgets allow all that epsilon_inf bounds
