"""Vectors of the randomizers, for clients in other languages.

`python -m tests.support.edge.browser.vectors` writes them.
"""

import json

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
from tests.support.edge.browser.expected import CLIENT, SECRET, plain_entry, reports, signing_key
from tests.support.paths import VECTORS

FILE = VECTORS / "randomization.json"
ABOUT = (
    "Reports of one client. `entry` is the collection's in the list of an edge; `secret` the 32 bytes of a "
    "producer's file, in hexadecimal. Each report draws `words`, fresh uniform 64-bit words in this order, "
    "16 hexadecimal digits each, and no other; words of permanent responses come from secret, client "
    "and value."
)
LISTED = ("JFK", "LGA", "naïve café")
TEXTS = ["JFK", "LGA", "naïve café", "", "日本", "JFK"]
FIELDS = (Field("carrier", ("AA", "B6"), True), Field("origin", ("JFK", "LGA"), False))
PAIRS = [["AA", "JFK"], ["B6", "LGA"], ["UA", "LGA"], ["AA", "EWR"]]
SETS = [["JFK"], ["JFK", "LGA", "naïve café"], [], ["EWR", "LGA"]]
BITS = 0.25, 0.375, 0.625
COLLECTIONS = [
    (Collection("airport", KRR.from_epsilon(3, 1.0), LISTED), TEXTS),
    (Collection("airport", KRR.from_epsilon(4, 1.0), LISTED, other=True), TEXTS),
    (Collection("minutes", KRR.from_epsilon(300, 2.5)), [0, 299, 300, -1]),
    (Collection("airport", LongitudinalKRR.from_epsilons(3, 4.0, 1.0), LISTED), TEXTS),
    (Collection("airport", LongitudinalKRR.from_epsilons(4, 4.0, 1.0), LISTED, other=True), TEXTS),
    (Collection("words", Rappor.from_probabilities(128, 2, 8, 0.25, 0.375, 0.625)), TEXTS),
    (Collection("words", Rappor.from_probabilities(128, 2, 8, 0.25, 0.375, 0.625), memoize=True), TEXTS),
    (Collection("words", Rappor.from_probabilities(72, 3, 5, 0.3, 0.25, 0.75), memoize=True), TEXTS),
    (Collection("words", Rappor.from_probabilities(256, 16, 300, 0.1, 0.25, 0.75), memoize=True), TEXTS),
    (Collection("words", Rappor.from_probabilities(264, 8, 2, 0.1, 0.25, 0.75), memoize=True), TEXTS),
    (Collection("words", LocalHash.from_epsilon(1.0)), TEXTS),
    (Collection("words", LocalHash.from_epsilon(2.0, None, 7)), TEXTS),
    (Collection("words", LocalHash.from_epsilon(6.0, None, 251)), TEXTS),
    (Collection("words", LongitudinalHash.from_epsilons(4.0, 1.0, 5460), memoize=True), TEXTS),
    (Collection("words", LongitudinalHash.from_epsilons(4.0, 3.0, 2000, 5), memoize=True), TEXTS),
    (Collection("air", SquareWave.from_epsilon(-0.5, 719.5, 256, 2.0)), [0, 719.4999, -1, 1e300, 360.25]),
    (Collection("share", SquareWave.from_epsilon(0, 1, 10, 1.0)), [0.1, 0.3, 0.7, 1]),
    (Collection("route", PairKRR.from_epsilons(3, 2, 1.0, 2.0), pair_labels(*FIELDS), fields=FIELDS), PAIRS),
    (Collection("route", OneHotPair.from_epsilon(3, 2, 2.0), pair_labels(*FIELDS), fields=FIELDS), PAIRS),
    (Collection("plan", HotRappor.from_probabilities(3, 1, 0.25, 0.375, 0.625), LISTED), TEXTS),
    (Collection("plan", HotRappor.from_probabilities(4, 2, *BITS), LISTED, other=True, memoize=True), SETS),
    (Collection("words", PrefixTree.from_epsilon((2, 4, 6), 2.0)), TEXTS),
    (Collection("words", PrefixTree.from_epsilon((1, 2, 3, 12), 1.0, 26)), TEXTS),
]


def vectors():
    """Make the vectors anew."""
    found = []
    for number, (collection, values) in enumerate(COLLECTIONS):
        entry = plain_entry(collection, signing_key())
        made = [
            {"value": value} | each
            for value, each in zip(values, reports(collection, values, seed=number), strict=True)
        ]
        found.append({"entry": entry, "reports": made})
    return {"about": ABOUT, "secret": SECRET.hex(), "client": CLIENT, "collections": found}


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
