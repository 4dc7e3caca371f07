"""The list of collections that an edge serves, and what a producer checks of it.

Rule: a producer takes nothing from it. It randomizes by its own file, and compares.
"""

from collections.abc import Iterable, Mapping

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from deniable.config.settings.edge_address import KEY_BYTES
from deniable.estimators.collection import Collection
from deniable.producers.transport.agreement import Disagreement
from deniable.producers.transport.parameter_differences import differences
from deniable.protocol.publication import Publication, PublishedParameters, shortened
from deniable.protocol.uploads.signed_list import FORMAT, signed_bytes, thresholds_as_numbers

COLLECTIONS_PATH = "/v1/collections"
MOST_LIST_BYTES = 1 << 25
SIGNATURE_BYTES = 64
REMEDY = "Use the edge's collection file here"
REMEDY_IF_ABSENT = (
    "Add it to the edge's collection file, raise its revision, and restart edges, relays and workers"
)


class CollectionListError(ValueError):
    """The list cannot be read. The message says why, without a byte of it."""


class WrongKeyError(CollectionListError):
    """The list is not signed by the configured key."""


class _Answer(msgspec.Struct, frozen=True):
    signed: str
    signature: bytes
    public_key: bytes


class _Entry(msgspec.Struct, frozen=True):
    name: str
    fingerprint: str
    mechanism: dict[str, int | str]
    values: tuple[str, ...]
    other: bool
    memoize: bool
    window_seconds: int
    epsilon: float
    epsilon_inf: float | None


class _List(msgspec.Struct, frozen=True):
    format: int
    revision: int
    collections: tuple[_Entry, ...]


def read_list(body: bytes, key: bytes | None) -> dict[str, Publication]:
    """Read the answer to GET /v1/collections.

    Parameters
    ----------
    body : of the answer.
    key : that must have signed the list, 32 bytes; None: its signature is not checked.

    Returns
    -------
    Each collection as the edge takes it, by name.

    Raises
    ------
    CollectionListError, and nothing else, whatever the bytes are; WrongKeyError if the signature is wrong.
    """
    if len(body) > MOST_LIST_BYTES:
        raise CollectionListError(f"it has more than {MOST_LIST_BYTES} bytes")
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        if key is not None:
            _check_signature(answer, key)
        content = msgspec.json.decode(answer.signed, type=_List)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise CollectionListError("it is not a list of this version") from None
    if content.format != FORMAT:
        raise CollectionListError("it is a list of another version")
    size = len(content.collections)
    return {each.name: _publication(each, content.revision, size) for each in content.collections}


def edge_disagreements(
    collections: Iterable[Collection], listed: Mapping[str, Publication]
) -> dict[str, Disagreement]:
    """Compare collections with an edge's list, which has no canaries.

    Returns
    -------
    An entry for each collection whose reports the edge rejects, by name.
    """
    found = {}
    for own in collections:
        theirs = listed.get(own.name)
        if own.canary:
            continue
        if theirs is None:
            what = f"the edge does not take collection '{own.name}', and rejects its reports"
            found[own.name] = Disagreement(what, REMEDY_IF_ABSENT)
        elif differing := differences(own, theirs, "edge"):
            what = f"the edge rejects reports of collection '{own.name}', whose parameters differ"
            found[own.name] = Disagreement(f"{what}: {'; '.join(differing)}", REMEDY)
    return found


def _check_signature(answer: _Answer, key: bytes) -> None:
    if len(key) != KEY_BYTES or len(answer.signature) != SIGNATURE_BYTES:
        raise WrongKeyError("it is not signed by edge_public_key")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(answer.signature, signed_bytes(answer.signed))
    except InvalidSignature:
        raise WrongKeyError("it is not signed by edge_public_key") from None


def _publication(entry: _Entry, revision: int, collections: int) -> Publication:
    return Publication(
        1,
        entry.name,
        entry.fingerprint,
        revision,
        collections,
        entry.epsilon,
        entry.epsilon_inf,
        PublishedParameters(
            thresholds_as_numbers(entry.mechanism),
            shortened(entry.values),
            entry.other,
            entry.memoize,
            entry.window_seconds,
        ),
    )
