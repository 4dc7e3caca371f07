"""Vectors of the randomizers, for clients in other languages.

`python -m tests.support.edge.browser.vectors` writes them.
"""

import json

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
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
