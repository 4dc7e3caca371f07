"""What Python makes of the same secret, values and words; and entries of the list of collections."""

import json
import math

import numpy as np

from deniable.config.settings.allowance import Allowance
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import SigningKey
from deniable.producers.responders.factory import responder_of
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords

SECRET = bytes(range(32))
CLIENT = "device"


class RecordedWords:
    """Words of a source, kept in the order in which they were drawn, whatever the shape of a draw."""

    def __init__(self, words):
        self._words = words
        self.drawn = []

    def words64(self, shape):
        words = self._words.words64(shape)
        self.drawn += words.reshape(-1).tolist()
        return words


def entry(allowance, key, delivery_seconds=10):
    """Return a collection's entry in the list of an edge."""
    return entries([allowance], key, delivery_seconds)[0]


def entries(allowances, key, delivery_seconds=10):
    body = collection_list(1, allowances, delivery_seconds, key).body
    return json.loads(json.loads(body)["signed"])["collections"]


def plain_entry(collection, key):
    """The entry of a collection without a budget."""
    return entry(Allowance(collection, None), key)


def reports(collection, values, seed, client=CLIENT, secret=SECRET):
    """Randomize values one at a time; return for each its cohort, its report and the fresh words it drew.

    Returns
    -------
    list of dict with `cohort`, `report` in hexadecimal, and `words`, 16 hexadecimal digits each.
    """
    source = RecordedWords(RepeatableWords(seed))
    responder = responder_of(collection, Secret(secret), source)
    found = []
    for value in values:
        source.drawn = []
        cohorts, rows = responder.prepare([value], [client]).respond(slice(0, 1))
        words = [f"{word:016x}" for word in source.drawn]
        found.append({"cohort": int(cohorts[0]), "report": rows[0].tobytes().hex(), "words": words})
    return found


def signing_key():
    """A key for tests."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def javascript(value):
    """Return a true value as JSON for a script: what JSON cannot hold is named by its kind."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"}
    if isinstance(value, int | np.integer) and abs(int(value)) >= 2**53:
        return {"integer": str(value)}
    if isinstance(value, set | frozenset):
        return {"set": sorted(value)}
    return value
