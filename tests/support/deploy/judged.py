"""Sample estimates beside a sample truth."""

import numpy as np

from deniable.deploy.demo.verdict import JudgedCollection
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.rappor import Rappor

REAL = 121
DECOYS = 210
MECHANISM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)


def judged(missed: int, false: int, found: int = 100, real: int = REAL) -> JudgedCollection:
    """Build an estimate where intervals miss `missed` of `real` values, and `false` of `found` are decoys."""
    values = tuple(f"real-{i}" for i in range(real)) + tuple(f"decoy-{i}" for i in range(DECOYS))
    share = np.array([1 / real] * real + [1e-9] * DECOYS)
    low, high = share - 0.001, share + 0.001
    low[:missed] += 0.0011
    significant = np.zeros(len(values), bool)
    significant[: found - false] = True
    significant[real : real + false] = True
    estimate = Estimate("test", 1000, share, np.full(len(values), 0.001), low, high, significant)
    truth = {value: 7 for value in values[:real]}
    return JudgedCollection(Collection("place", MECHANISM, candidates=values), estimate, truth)
