"""That most values are unlisted is believed only at the stated rate, and of independent reports alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.detectors.unlisted_majority import OtherSign, other_signs
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

LISTED = Collection("plan", KRR.from_epsilon(4, 2.0), values=("a", "b", "c"), other=True)
AGAIN = Collection(
    "again", LongitudinalKRR.from_epsilons(3, 2.5, 1.5), values=("a", "b"), other=True, memoize=True
)
HOT = Collection(
    "hot", HotRappor.from_probabilities(10, 1, 0.25, 0.25, 0.75), values=tuple("abcdefghi"), other=True
)
FIRST, SECOND = Field("from", ("a", "b"), True), Field("to", ("a", "b", "c"), True)
PAIR = Collection(
    "pair", PairKRR.from_epsilons(3, 4, 1.0, 2.0), pair_labels(FIRST, SECOND), fields=(FIRST, SECOND)
)


@pytest.mark.parametrize("reports", [1000, 8000])
@pytest.mark.parametrize("rate", [1e-6, 1e-2])
def test_false_alarms_are_rarer_than_stated(reports: int, rate: float) -> None:
    """Exactly, where just half of the values are unlisted: two binomials; the bound allows for more."""
    (sign,) = other_signs(LISTED, has_clients=True)
    half = reports // 2
    least = next(n for n in range(reports) if sign.is_majority(n, reports, rate))
    unlisted = binom.pmf(np.arange(half + 1), half, sign.if_unlisted)
    above = binom.sf(least - 1 - np.arange(half + 1), reports - half, sign.if_listed)
    assert rate**2.5 < float(unlisted @ above) < rate


def test_three_quarters_are_found_among_a_thousand() -> None:
    """Six standard deviations below what is expected suffice."""
    (sign,) = other_signs(LISTED, has_clients=True)
    share = 0.75 * sign.if_unlisted + 0.25 * sign.if_listed
    assert sign.is_majority(math.floor(1000 * share - 2 * math.sqrt(250)), 1000, 1e-6)
    assert sign.is_majority(1000, 1000, 1e-6)
    assert not sign.is_majority(0, 1000, 1e-6)


def test_probabilities_are_those_of_the_mechanisms() -> None:
    mechanism = LISTED.mechanism
    assert isinstance(mechanism, KRR)
    (sign,) = other_signs(LISTED, has_clients=True)
    assert (sign.if_unlisted, sign.if_listed) == (mechanism.p, mechanism.q)
    (bit,) = other_signs(HOT, has_clients=True)
    # f/2 = 1/8 of the permanent bits are flipped.
    assert (bit.if_unlisted, bit.if_listed) == (
        float(Fraction(3, 4) * Fraction(7, 8) + Fraction(1, 4) * Fraction(1, 8)),
        float(Fraction(1, 4) * Fraction(7, 8) + Fraction(3, 4) * Fraction(1, 8)),
    )


def test_reports_that_show_it_are_counted() -> None:
    (listed,), (bit,) = (other_signs(each, has_clients=False) for each in (LISTED, HOT))
    assert listed.count(np.array([0, 3, 1, 3], np.uint8)) == 2
    assert bit.count(np.array([[255, 1], [0, 2], [0, 3]], np.uint8)) == 2
    first, second = other_signs(PAIR, has_clients=True)
    cells = np.array([row * 4 + column for row, column in [(2, 0), (2, 3), (0, 3), (1, 2), (0, 3)]], np.uint8)
    assert (first.count(cells), second.count(cells)) == (2, 3)


@pytest.mark.parametrize(
    "collection",
    [
        Collection("plan", KRR.from_epsilon(3, 2.0), values=("a", "b", "c")),
        Collection("wait", SquareWave.from_epsilon(0.0, 10.0, 8, 1.0)),
        Collection("site", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)),
        Collection("both", OneHotPair.from_epsilon(3, 4, 2.0), PAIR.values, fields=PAIR.fields),
    ],
)
def test_reports_that_show_nothing_of_it_have_no_sign(collection: Collection) -> None:
    assert other_signs(collection, has_clients=False) == []


def test_reports_of_clients_with_permanent_responses_depend_on_each_other() -> None:
    remembered = Collection("hot", HOT.mechanism, values=HOT.values, other=True, memoize=True)
    for collection in (AGAIN, remembered):
        assert other_signs(collection, has_clients=True) == []
        (sign,) = other_signs(collection, has_clients=False)
        assert isinstance(sign, OtherSign)
