"""The thresholds of RAPPOR never exceed either epsilon."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.mechanisms.rappor import Rappor
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bits": 4}, r"bits must be a multiple of 8 in \[8, 4096\], got 4"),
        ({"bits": 20}, r"bits must be a multiple of 8 in \[8, 4096\], got 20"),
        ({"bits": 4104}, r"bits must be a multiple of 8 in \[8, 4096\], got 4104"),
        ({"hashes": 0}, r"hashes must be in \[1, 16\] for 128 bits, got 0"),
        ({"hashes": 17}, r"hashes must be in \[1, 16\] for 128 bits, got 17"),
        ({"bits": 264, "hashes": 9}, r"hashes must be in \[1, 8\] for 264 bits, got 9"),
        ({"cohorts": 0}, r"cohorts must be in \[1, 65535\], got 0"),
        ({"cohorts": 65536}, r"cohorts must be in \[1, 65535\], got 65536"),
        ({"flip_threshold": -1}, r"flip_threshold must be in \[0, 2147483648\), got -1"),
        ({"flip_threshold": 1 << 31}, r"flip_threshold must be in \[0, 2147483648\), got 2147483648"),
        ({"p_threshold": 0}, r"p_threshold must be in \(0, q_threshold\) .* got 0 and 2684354560"),
        ({"q_threshold": 3 << 29}, r"p_threshold must be in .* got 1610612736 and 1610612736"),
        ({"q_threshold": 1 << 32}, r".* q_threshold below 4294967296, got 1610612736 and 4294967296"),
    ],
)
def test_parameter_out_of_range_is_rejected(changes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        rappor(**changes)


@pytest.mark.parametrize(
    ("f", "p", "q", "message"),
    [
        (-0.1, 0.35, 0.65, r"f must be in \[0, 1\), got -0.1"),
        (1.0, 0.35, 0.65, r"f must be in \[0, 1\), got 1.0"),
        (math.nan, 0.35, 0.65, r"f must be in \[0, 1\), got nan"),
        (0.25, 0.35, 1.0, r"q must be in \(0, 1\), got 1.0"),
        (0.25, 0.0, 0.65, r"p must be in \(0, q = 0.65\), got 0.0"),
        (0.25, 0.65, 0.65, r"p must be in \(0, q = 0.65\), got 0.65"),
        (0.25, 0.5, 0.5 + 2.0**-40, r"p_threshold must be in \(0, q_threshold\) .*"),
    ],
)
def test_probability_out_of_range_is_rejected(f, p, q, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Rappor.from_probabilities(128, 2, 8, f, p, q)
