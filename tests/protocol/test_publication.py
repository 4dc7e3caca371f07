"""What workers publish: small records, read back exactly; anything else is skipped."""

from dataclasses import replace

import msgspec
import pytest

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.publication import (
    ManyValues,
    PublicationError,
    are_complete,
    decode_publication,
    encode_publication,
    publication_of,
    readable,
)
from tests.support.messages import PinMessages
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY

MANY = Collection("many", KRR.from_epsilon(1000, 1.0), values=tuple(f"value {i}" for i in range(1000)))
LONG = Collection("long", KRR.from_epsilon(2, 1.0), values=("a" * 100_000, "b"))


@pytest.mark.parametrize("collection", [CARRIER, LATENCY, DESTINATION, replace(LATENCY, canary=True), MANY])
def test_decoding_inverts_encoding(collection: Collection) -> None:
    publication = publication_of(collection, 7, 3)
    key, value = encode_publication(publication)
    assert (key.decode(), decode_publication(value)) == (collection.name, publication)
    assert publication.fingerprint == f"{collection.fingerprint:016x}"


@pytest.mark.parametrize("collection", [MANY, LONG])
def test_long_lists_are_published_as_number_and_hash(collection: Collection) -> None:
    publication = publication_of(collection)
    values = publication.parameters.values
    assert isinstance(values, ManyValues)
    assert values.count == len(collection.values)
    other = publication_of(replace(collection, values=tuple(reversed(collection.values))))
    assert other.parameters.values != values
    assert len(encode_publication(publication)[1]) < 1000


def test_parameters_are_what_the_fingerprint_hashes() -> None:
    published = msgspec.to_builtins(publication_of(CARRIER).parameters) | {"name": "carrier"}
    assert msgspec.json.decode(msgspec.json.encode(CARRIER.meaning)) == published | {
        "values": list(CARRIER.values)
    }


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{}",
        b"[" * 10_000,
        b"\xff",
        encode_publication(publication_of(CARRIER))[1].replace(b'"version":1', b'"version":2'),
        encode_publication(publication_of(CARRIER))[1].replace(b'"carrier"', b'"Not A Name"'),
    ],
)
def test_bad_records_are_skipped(bad: bytes) -> None:
    with pytest.raises(PublicationError):
        decode_publication(bad)
    key, good = encode_publication(publication_of(CARRIER))
    assert set(readable({b"x": bad, key: good})) == {"carrier"}
    assert readable({b"another key": good}) == {}


def test_collections_are_complete_once_all_of_the_newest_file_are_there() -> None:
    old = [publication_of(each, 1, 2) for each in (CARRIER, LATENCY)]
    new = [publication_of(each, 2, 2) for each in (CARRIER, LATENCY)]
    assert not are_complete([])
    assert are_complete(old)
    assert not are_complete([new[0], old[1]])
    assert are_complete(new)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({"it is no record": lambda: decode_publication(b"{}")})
