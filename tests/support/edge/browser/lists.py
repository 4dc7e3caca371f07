"""Signed lists of collections for scenarios of a client."""

import json

from edge.collection_list import collection_list
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from producers.budget.allowance import Allowance, Budget
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


def lists_for_scripts():
    """Return lists of revision 1 and 2 and their key, and one of another key, as JSON for a script."""
    key = signing_key()
    bodies = {
        "present": collection_list(1, allowances(), 10, key).body.decode(),
        "newer": collection_list(2, allowances(1.5), 10, key).body.decode(),
        "foreign": collection_list(1, allowances(), 10, KEY).body.decode(),
    }
    return json.dumps({"lists": bodies, "publicKey": key.public_key})
