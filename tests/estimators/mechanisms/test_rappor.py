"""The thresholds of RAPPOR never exceed either epsilon."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS

WORDS = 1 << 32
EXPECTED = json.loads((VECTORS / "accounting.json").read_text())["rappor"]


def logarithm(ratio: Fraction) -> Decimal:
    return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def rappor(**changes):
    fields = {"bits": 128, "hashes": 2, "cohorts": 8, "flip_threshold": 1 << 29, "p_threshold": 3 << 29}
    return Rappor(**{**fields, "q_threshold": 5 << 29, **changes})


@pytest.mark.parametrize("vector", EXPECTED)
def test_published_figures(vector):
    mechanism = Rappor.from_probabilities(128, vector["hashes"], 8, vector["f"], vector["p"], vector["q"])
    assert mechanism.p_star == pytest.approx(vector["p_star"], rel=1e-9)
    assert mechanism.q_star == pytest.approx(vector["q_star"], rel=1e-9)
    assert mechanism.epsilon_one == pytest.approx(vector["epsilon_one"], rel=1e-9)
    assert mechanism.epsilon == mechanism.epsilon_one
    infinite = math.inf if vector["epsilon_inf"] is None else vector["epsilon_inf"]
    assert mechanism.epsilon_inf == pytest.approx(infinite, rel=1e-9)


@given(
    st.integers(1, 16),
    st.integers(1, WORDS // 2 - 1),
    st.lists(st.integers(1, WORDS - 1), min_size=2, max_size=2, unique=True).map(sorted),
)
def test_epsilons_are_close_upper_bounds(hashes, flip, thresholds):
    mechanism = Rappor(64, hashes, 4, flip, *thresholds)
    half_f, p, q = (Fraction(word, WORDS) for word in (flip, *thresholds))
    p_star, q_star = p * (1 - half_f) + q * half_f, q * (1 - half_f) + p * half_f
    with localcontext(prec=60):
        one = hashes * logarithm(q_star * (1 - p_star) / (p_star * (1 - q_star)))
        permanent = 2 * hashes * logarithm((1 - half_f) / half_f)
        assert one <= Decimal(mechanism.epsilon_one) <= one * (1 + Decimal(2) ** -50)
        assert permanent <= Decimal(mechanism.epsilon_inf) <= permanent * (1 + Decimal(2) ** -50)
    assert mechanism.p_star == float(p_star)
    assert mechanism.q_star == float(q_star)


@given(st.floats(0, 0.999), st.floats(0.001, 0.499), st.floats(0.501, 0.999))
def test_rounding_never_raises_epsilon(f, p, q):
    """Each threshold is the nearest one on the private side: f and p up, q down."""
    mechanism = Rappor.from_probabilities(128, 2, 8, f, p, q)
    assert 0 <= Fraction(mechanism.flip_threshold, WORDS) - Fraction(f) / 2 < Fraction(1, WORDS)
    assert 0 <= Fraction(mechanism.p_threshold, WORDS) - Fraction(p) < Fraction(1, WORDS)
    assert 0 <= Fraction(q) - Fraction(mechanism.q_threshold, WORDS) < Fraction(1, WORDS)


def test_probabilities_are_those_of_the_thresholds():
    mechanism = rappor()
    assert (mechanism.f, mechanism.p, mechanism.q) == (0.25, 0.375, 0.625)


def test_epsilon_inf_is_infinite_without_permanent_noise():
    assert rappor(flip_threshold=0).epsilon_inf == math.inf


def test_width_and_parameters():
    assert rappor().width == 128
    assert rappor().parameters() == {
        "kind": "rappor",
        "bits": 128,
        "hashes": 2,
        "cohorts": 8,
        "flip_threshold": 1 << 29,
        "p_threshold": 3 << 29,
        "q_threshold": 5 << 29,
    }


def test_messages(pin_messages: PinMessages) -> None:
    chosen = partial(Rappor.from_probabilities, 128, 2, 8)
    pin_messages(
        {f"bits is {each}": partial(rappor, bits=each) for each in (4, 20, 4104)}
        | {f"hashes is {each}": partial(rappor, hashes=each) for each in (0, 17)}
        | {"9 hashes for 264 bits": partial(rappor, bits=264, hashes=9)}
        | {f"cohorts is {each}": partial(rappor, cohorts=each) for each in (0, 65536)}
        | {f"flip_threshold is {each}": partial(rappor, flip_threshold=each) for each in (-1, 1 << 31)}
        | {
            "p_threshold is 0": partial(rappor, p_threshold=0),
            "q_threshold is p_threshold": partial(rappor, q_threshold=3 << 29),
            "q_threshold is 2^32": partial(rappor, q_threshold=1 << 32),
        }
        | {f"f is {each}": partial(chosen, each, 0.35, 0.65) for each in (-0.1, 1.0, math.nan)}
        | {
            "q is 1": partial(chosen, 0.25, 0.35, 1.0),
            "p is 0": partial(chosen, 0.25, 0.0, 0.65),
            "p is q": partial(chosen, 0.25, 0.65, 0.65),
            "p and q differ by less than a threshold": partial(chosen, 0.25, 0.5, 0.5 + 2.0**-40),
        }
    )
