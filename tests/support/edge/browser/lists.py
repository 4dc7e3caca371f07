"""Signed lists of collections for scenarios of a client."""

import json

from deniable.config.settings.allowance import Allowance, Budget
from deniable.edge.collection_list import collection_list
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.edge.browser.expected import signing_key
from tests.support.edge.served import KEY

WINDOW = {"window_seconds": 3600, "grace_seconds": 600}
OFTEN = 65535
SITES = ("example.org", "example.net", "github.com", "python.org", "wikipedia.org")


def allowances(epsilon=2.0):
    """Collections of a client's scenarios; `epsilon` is that of `many`."""
    bloom = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    return (
        Allowance(Collection("many", KRR.from_epsilon(5, epsilon), **WINDOW), None, OFTEN),
        Allowance(
            Collection("once", KRR.from_epsilon(3, 1.0), ("a", "b"), other=True, **WINDOW),
            Budget(3.5, 1e-12, 86400),
        ),
        Allowance(Collection("texts", KRR.from_epsilon(4, 1.0), ("a", "b", "c", "d"), **WINDOW), None, OFTEN),
        Allowance(
            Collection("tariff", LongitudinalKRR.from_epsilons(3, 4.0, 1.0), ("a", "b", "c"), **WINDOW),
            None,
            OFTEN,
        ),
        Allowance(Collection("words", bloom, **WINDOW), None, OFTEN),
        Allowance(Collection("remembered", bloom, memoize=True, candidates=SITES, **WINDOW), None, OFTEN),
    )


FIELDS = (Field("carrier", ("AA", "B6"), True), Field("origin", ("JFK", "LGA"), False))


def further_allowances():
    """Collections of the mechanisms that are in a module of their own."""
    pairs, bits = PairKRR.from_epsilons(3, 2, 1.0, 1.0), OneHotPair.from_epsilon(3, 2, 2.0)
    kept = LongitudinalHash.from_epsilons(4.0, 1.0)
    hots = [HotRappor.from_probabilities(4, hot, 0.25, 0.35, 0.65) for hot in (1, 2)]
    listed = {"values": ("a", "b", "c"), "other": True, "memoize": True}
    collections = (
        Collection("hashed", LocalHash.from_epsilon(2.0), candidates=SITES, **WINDOW),
        Collection("search", PrefixTree.from_epsilon((2, 4, 6), 2.0), **WINDOW),
        Collection("kept", kept, candidates=SITES, memoize=True, **WINDOW),
        Collection("minutes", SquareWave.from_epsilon(0, 600, 64, 2.0), **WINDOW),
        Collection("route", pairs, pair_labels(*FIELDS), fields=FIELDS, **WINDOW),
        Collection("routes", bits, pair_labels(*FIELDS), fields=FIELDS, **WINDOW),
        Collection("plan", hots[0], **listed, **WINDOW),
        Collection("plans", hots[1], **listed, **WINDOW),
    )
    return tuple(Allowance(each, None, OFTEN) for each in collections)


def lists_for_scripts():
    """Return lists of revision 1 and 2, of all mechanisms, and of another key, and their key; as JSON."""
    key = signing_key()
    bodies = {
        "present": collection_list(1, allowances(), 10, key).body.decode(),
        "newer": collection_list(2, allowances(1.5), 10, key).body.decode(),
        "further": collection_list(1, (*allowances(), *further_allowances()), 10, key).body.decode(),
        "foreign": collection_list(1, allowances(), 10, KEY).body.decode(),
    }
    return json.dumps({"lists": bodies, "publicKey": key.public_key})
