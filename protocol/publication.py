"""What workers publish about a collection in the topic `collections`: one JSON record each, by name.

Nothing in it is secret, and nothing is about a person. A record stays below 20 kB: a long list of values is
replaced by its length and a hash.
"""

import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Annotated, Literal

import msgspec

from deniable.estimators.collection import Collection

PARTITION = 0  # of all records, so that a reader asks for one partition only
MOST_VALUES = 300
MOST_VALUES_BYTES = 8192
HASH_BYTES = 16

CollectionName = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_-]{0,62}$")]
Count = Annotated[int, msgspec.Meta(ge=0)]


class PublicationError(ValueError):
    """A record of the topic `collections` cannot be read."""


class ManyValues(msgspec.Struct, frozen=True):
    """A list of values that is too long to be published: its length, and a BLAKE2b-128 hash in hex."""

    count: Count
    hash: str


class PublishedParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """`Collection.meaning` without the name; `values` may be replaced by `ManyValues`."""

    mechanism: dict[str, int | str]
    values: tuple[str, ...] | ManyValues
    other: bool
    memoize: bool
    window_seconds: int
    canary: bool = False


class Publication(msgspec.Struct, frozen=True):
    """One collection, as the workers count it.

    Parameters
    ----------
    version : of this format.
    name : of the collection.
    fingerprint : of the collection, 16 hexadecimal digits.
    revision : of the workers' collection file.
    collections : number of collections in that file. A reader that has found as many records of this revision
        knows all collections.
    epsilon : privacy loss of one report, nats.
    epsilon_inf : privacy loss of all reports with an unchanged value, nats; None without memoization.
    parameters : that define the meaning of a report.
    """

    version: Literal[1]
    name: CollectionName
    fingerprint: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    revision: Count
    collections: Count
    epsilon: float
    epsilon_inf: float | None
    parameters: PublishedParameters


def publication_of(collection: Collection, revision: int = 0, collections: int = 1) -> Publication:
    """Describe a collection of a file; `revision`, `collections` : see `Publication`."""
    meaning = collection.meaning
    bound = collection.epsilon_inf
    return Publication(
        1,
        collection.name,
        f"{collection.fingerprint:016x}",
        revision,
        collections,
        collection.mechanism.epsilon,
        None if bound == math.inf else bound,
        PublishedParameters(
            collection.mechanism.parameters(),
            shortened(collection.values),
            collection.other,
            collection.memoize,
            collection.window_seconds,
            "canary" in meaning,
        ),
    )


def encode_publication(publication: Publication) -> tuple[bytes, bytes]:
    """Encode key and value of a record."""
    return publication.name.encode(), msgspec.json.encode(publication)


def decode_publication(value: bytes) -> Publication:
    """Decode a record's value; PublicationError if it is not one of this version."""
    try:
        return msgspec.json.decode(value, type=Publication)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PublicationError("it is not a record of this version") from None


def are_complete(publications: Iterable[Publication]) -> bool:
    """Whether these are all collections of the newest file: False while workers are still writing them."""
    found = list(publications)
    newest = [each for each in found if each.revision == max(other.revision for other in found)]
    return bool(newest) and len(newest) == newest[0].collections


def readable(rows: Mapping[bytes, bytes]) -> dict[str, Publication]:
    """Decode rows, by name. Records of later versions and foreign ones are skipped."""
    found = {}
    for key, value in rows.items():
        try:
            publication = decode_publication(value)
        except PublicationError:
            continue
        if publication.name.encode() == key:
            found[publication.name] = publication
    return found


def shortened(values: tuple[str, ...]) -> tuple[str, ...] | ManyValues:
    """Return values, or their number and hash if they are many."""
    text = msgspec.json.encode(values)
    if len(values) <= MOST_VALUES and len(text) <= MOST_VALUES_BYTES:
        return values
    return ManyValues(len(values), blake2b(text, digest_size=HASH_BYTES).hexdigest())
