"""Under another list of values, either all permanent responses are redrawn or none, whatever the value.

If only values whose index changed were redrawn, an unchanged response would reveal the value. The
instantaneous noise is removed (below 1e-8), so reports show the permanent responses, which repeat in every
run.
"""

import numpy as np
import pytest
from scipy.special import chdtri

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.responders.factory import responder_of
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords

SECRET = Secret(bytes(range(32)))
LISTED = ("AA", "B6", "9E", "DL", "UA", "WN", "AS", "F9", "HA")
REPORTED = (*LISTED, "ZZ")
CLIENTS = [f"client-{number}" for number in range(4000)]
QUIET = (1e-9, 1 - 1e-9)

#: Ten buckets; the last is `other` or one more value.
LONGITUDINAL = LongitudinalKRR(KRR.from_epsilon(10, 1.0), KRR(10, 2**64 - 1))
ONE_HOT = HotRappor.from_probabilities(10, 1, 0.5, *QUIET)
THREE_HOT = HotRappor.from_probabilities(10, 3, 0.5, *QUIET)
every_mechanism = pytest.mark.parametrize(
    "mechanism", [LONGITUDINAL, ONE_HOT, THREE_HOT], ids=["longitudinal", "one-hot", "three-hot"]
)


def responses(mechanism, values=LISTED, other=True, candidates=(), reported=REPORTED, seed=1):
    """Permanent responses of all clients to each value, uint8 (reported, clients, bytes)."""
    collection = Collection("c", mechanism, values, other, candidates, memoize=True)
    several = getattr(mechanism, "hot", 1) > 1
    true = [{value} if several else value for value in reported for _ in CLIENTS]
    batch = responder_of(collection, SECRET, RepeatableWords(seed)).prepare(true, CLIENTS * len(reported))
    return batch.respond(slice(None))[1].reshape(len(reported), len(CLIENTS), -1)


def noise(mechanism, values, other):
    """Changes to the truth, integers (reported, clients, places), and the probability of each."""
    reported = REPORTED if values else range(10)
    shown = responses(mechanism, values, other, reported=reported)
    buckets = {value: bucket for bucket, value in enumerate(values or range(9))}
    numbers = np.array([buckets.get(value, 9) for value in reported])[:, np.newaxis]
    if mechanism is LONGITUDINAL:
        permanent = mechanism.permanent
        return (shown - numbers[:, np.newaxis]) % 10, np.array([permanent.p, *[permanent.q] * 9])
    truth = np.packbits(np.arange(mechanism.bits) == numbers, axis=1, bitorder="little")
    flips = np.unpackbits(shown ^ truth[:, np.newaxis], axis=2, bitorder="little")
    return flips, np.array([1 - mechanism.f / 2, mechanism.f / 2])


def are_independent(first, second, chances):
    """Pearson's test of the noise under two lists, false alarm 1e-6 in all.

    It detects if one client in five keeps its noise, which adds at least n / 25 to a statistic.
    """
    outcomes, expected = len(chances), len(CLIENTS) * np.outer(chances, chances).ravel()
    pairs = np.moveaxis(outcomes * first.astype(np.int64) + second, 1, 2).reshape(-1, len(CLIENTS))
    hits = np.array([np.bincount(each, minlength=outcomes**2) for each in pairs])
    statistic = ((hits - expected) ** 2 / expected).sum(axis=1)
    return statistic.max() < chdtri(outcomes**2 - 1, 1e-6 / len(pairs))


@pytest.mark.slow
@every_mechanism
@pytest.mark.parametrize(
    ("values", "other"),
    [(("B6", "AA", *LISTED[2:]), True), (REPORTED, False)],
    ids=["two values swapped", "one more value, no other"],
)
def test_other_list_redraws_every_permanent_response(mechanism, values, other):
    first, chances = noise(mechanism, LISTED, True)
    second, _ = noise(mechanism, values, other)
    assert are_independent(first, second, chances)


@pytest.mark.slow
@every_mechanism
def test_equal_list_keeps_permanent_responses(mechanism):
    assert np.array_equal(responses(mechanism), responses(mechanism, seed=2))


def test_size_with_other_is_not_the_list_without():
    """Ten buckets either way: the integers up to 9, or up to 8 and `other`."""
    first, chances = noise(LONGITUDINAL, (), False)
    second, _ = noise(LONGITUDINAL, (), True)
    assert are_independent(first, second, chances)


def test_other_candidates_keep_permanent_responses():
    """Bloom RAPPOR memoizes the text itself; candidates change no report."""
    bloom = Rappor.from_probabilities(64, 2, 4, 0.5, *QUIET)
    first = responses(bloom, (), False, LISTED)
    assert np.array_equal(first, responses(bloom, (), False, (*LISTED[::-1], "ZZ"), seed=2))
