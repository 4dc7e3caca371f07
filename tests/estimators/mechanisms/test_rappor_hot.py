"""One-hot and k-hot RAPPOR: exact epsilons, thresholds on the private side, rejected input."""

import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS

WORDS = 1 << 32
EXPECTED = json.loads((VECTORS / "accounting.json").read_text())["rappor"]
THRESHOLDS = (1 << 29, 3 << 29, 5 << 29)  # f = 1/4, p = 3/8, q = 5/8


@pytest.mark.parametrize("vector", EXPECTED)
def test_published_figures(vector):
    """Hashes and hot bits cost the same: two values differ in at most that many bits each way."""
    mechanism = HotRappor.from_probabilities(64, vector["hashes"], vector["f"], vector["p"], vector["q"])
    assert mechanism.p_star == pytest.approx(vector["p_star"], rel=1e-9)
    assert mechanism.q_star == pytest.approx(vector["q_star"], rel=1e-9)
    assert mechanism.epsilon_one == pytest.approx(vector["epsilon_one"], rel=1e-9)
    assert mechanism.epsilon == mechanism.epsilon_one
    infinite = math.inf if vector["epsilon_inf"] is None else vector["epsilon_inf"]
    assert mechanism.epsilon_inf == pytest.approx(infinite, rel=1e-9)


def worst_loss(buckets: int, hot: int, ones: Fraction, zeros: Fraction) -> Decimal:
    """Largest ln P(y|x)/P(y|w) over all outputs y and all sets x, w of 1 to `hot` buckets, bit by bit.

    A bit is reported as 1 with probability `ones` where it is set, and `zeros` where it is not.
    """
    sets = [bits for bits in itertools.product((0, 1), repeat=buckets) if 1 <= sum(bits) <= hot]
    chance = {(1, 1): ones, (1, 0): zeros, (0, 1): 1 - ones, (0, 0): 1 - zeros}  # by report and true bit
    most = {(a, b): max(chance[y, a] / chance[y, b] for y in (0, 1)) for a in (0, 1) for b in (0, 1)}
    pairs = {tuple(sorted(zip(x, w, strict=True))) for x in sets for w in sets}
    ratios = [math.prod(most[bits] for bits in pair) for pair in pairs]
    with localcontext(prec=60):
        return (Decimal(max(ratios).numerator) / Decimal(max(ratios).denominator)).ln()


@given(
    st.sampled_from([(2, 1), (3, 1), (4, 2), (5, 2), (6, 3)]),
    st.integers(1, WORDS // 2 - 1),
    st.lists(st.integers(1, WORDS - 1), min_size=2, max_size=2, unique=True).map(sorted),
)
@pytest.mark.slow
def test_epsilons_match_the_worst_pair_of_clients(size, flip, thresholds):
    mechanism = HotRappor(*size, flip, *thresholds)
    half_f, p, q = (Fraction(word, WORDS) for word in (flip, *thresholds))
    p_star, q_star = p * (1 - half_f) + q * half_f, q * (1 - half_f) + p * half_f
    for stated, ones, zeros in (
        (mechanism.epsilon_one, q_star, p_star),
        (mechanism.epsilon_inf, 1 - half_f, half_f),
    ):
        loss = worst_loss(*size, ones, zeros)
        assert loss <= Decimal(stated) <= loss * (1 + Decimal(2) ** -50)


def test_epsilon_is_an_upper_bound_beyond_half_of_the_buckets():
    mechanism = HotRappor(4, 4, *THRESHOLDS)
    assert worst_loss(4, 4, Fraction(9, 16), Fraction(7, 16)) <= Decimal(mechanism.epsilon_one)


@given(st.floats(0, 0.999), st.floats(0.001, 0.499), st.floats(0.501, 0.999))
def test_rounding_matches_bloom_rappor(f, p, q):
    hot = HotRappor.from_probabilities(64, 2, f, p, q)
    bloom = Rappor.from_probabilities(64, 2, 1, f, p, q)
    assert hot.flip_threshold == bloom.flip_threshold
    assert (hot.p_threshold, hot.q_threshold) == (bloom.p_threshold, bloom.q_threshold)
    assert (hot.p_star, hot.q_star, hot.epsilon_one, hot.epsilon_inf) == (
        bloom.p_star,
        bloom.q_star,
        bloom.epsilon_one,
        bloom.epsilon_inf,
    )


def test_probabilities_and_channel_are_those_of_the_thresholds():
    mechanism = HotRappor(4, 1, *THRESHOLDS)
    assert (mechanism.f, mechanism.p, mechanism.q) == (0.25, 0.375, 0.625)
    permanent = np.array([[0.875, 0.125], [0.125, 0.875]])
    instantaneous = np.array([[0.625, 0.375], [0.375, 0.625]])
    np.testing.assert_array_equal(mechanism.bit_channel, instantaneous @ permanent)


def test_epsilon_inf_is_infinite_without_permanent_noise():
    assert HotRappor(4, 1, 0, *THRESHOLDS[1:]).epsilon_inf == math.inf


@pytest.mark.parametrize(("buckets", "bits"), [(2, 8), (8, 8), (9, 16), (4096, 4096)])
def test_reports_fill_whole_bytes(buckets, bits):
    mechanism = HotRappor(buckets, 1, *THRESHOLDS)
    assert (mechanism.bits, mechanism.width, mechanism.cohorts) == (bits, bits, 1)


def test_parameters():
    assert HotRappor(12, 3, *THRESHOLDS).parameters() == {
        "kind": "rappor-hot",
        "buckets": 12,
        "hot": 3,
        "flip_threshold": 1 << 29,
        "p_threshold": 3 << 29,
        "q_threshold": 5 << 29,
    }


def test_ones_is_abstract():
    with pytest.raises(TypeError, match="ones"):
        TwoStepBits()


def test_messages(pin_messages: PinMessages) -> None:
    chosen = partial(HotRappor.from_probabilities, 64, 2)
    pin_messages(
        {f"buckets is {each}": partial(HotRappor, each, 1, *THRESHOLDS) for each in (1, 4097)}
        | {f"hot is {each}": partial(HotRappor, 4, each, *THRESHOLDS) for each in (0, 5)}
        | {f"flip_threshold is {each}": partial(HotRappor, 4, 1, each, 1, 2) for each in (-1, 1 << 31)}
        | {
            "p_threshold is 0": partial(HotRappor, 4, 1, 0, 0, 2),
            "p_threshold is q_threshold": partial(HotRappor, 4, 1, 0, 2, 2),
            "q_threshold is 2^32": partial(HotRappor, 4, 1, 0, 2, 1 << 32),
            "f is 1": partial(chosen, 1.0, 0.35, 0.65),
            "q is 1": partial(chosen, 0.25, 0.35, 1.0),
            "p is q": partial(chosen, 0.25, 0.65, 0.65),
        }
    )
