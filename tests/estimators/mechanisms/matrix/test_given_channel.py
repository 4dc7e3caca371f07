"""A channel given as a matrix: integer words, exact epsilon, rejected input."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.given_channel import GivenChannel
from tests.support.messages import PinMessages

WORDS = 1 << 64
SURVEY = np.array([[0.7, 0.1, 0.2], [0.2, 0.8, 0.3], [0.1, 0.1, 0.5]])


@given(st.integers(2, 6), st.integers(2, 6), st.data())
def test_words_match_the_matrix_to_the_last_digits(reports, values, data):
    weights = data.draw(st.lists(st.floats(1e-6, 1), min_size=reports * values, max_size=reports * values))
    matrix = np.reshape(weights, (reports, values))
    matrix /= matrix.sum(axis=0)
    mechanism = GivenChannel.from_matrix(matrix)
    assert {sum(column) for column in mechanism.words} == {WORDS}
    np.testing.assert_allclose(mechanism.channel, matrix, rtol=0, atol=1e-15)
    assert mechanism.width == reports


@given(st.integers(2, 6), st.floats(0.01, 16))
def test_epsilon_is_the_largest_log_ratio_rounded_up(k, epsilon):
    mechanism = GivenChannel.from_matrix(KRR.from_epsilon(k, epsilon).channel)
    ratio = max(Fraction(max(row), min(row)) for row in zip(*mechanism.words, strict=True))
    with localcontext(prec=60):
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    assert exact <= Decimal(mechanism.epsilon) <= exact + Decimal(2) ** -48
    assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-9)


def test_epsilon_of_a_survey():
    assert GivenChannel.from_matrix(SURVEY).epsilon == pytest.approx(math.log(7), rel=1e-15)


def test_report_possible_for_one_value_only_has_infinite_epsilon():
    assert GivenChannel.from_matrix(np.eye(3)).epsilon == math.inf


def test_report_independent_of_the_truth_has_epsilon_0():
    assert GivenChannel.from_matrix(np.full((4, 2), 0.25)).epsilon == 0.0


def test_impossible_report_does_not_affect_epsilon():
    assert GivenChannel.from_matrix(np.array([[0.75, 0.25], [0.25, 0.75], [0, 0]])).epsilon == pytest.approx(
        math.log(3), rel=1e-15
    )


def test_messages(pin_messages: PinMessages) -> None:
    matrices: dict[str, list[object]] = {
        "one dimension": [0.5, 0.5],
        "one row": [[1.0, 1.0]],
        "one column": [[1.0], [0.0]],
        "a probability above 1": [[1.1, 0.5], [-0.1, 0.5]],
        "a probability of nan": [[math.nan, 0.5], [0.5, 0.5]],
        "a column that sums to 0.9": [[0.5, 0.5], [0.5, 0.4]],
    }
    words: dict[str, tuple[tuple[int, ...], ...]] = {
        "no rows of words": (),
        "one row of words": ((WORDS, 0),),
        "one column of words": ((WORDS,), (WORDS,)),
        "rows of other lengths": ((WORDS, 0), (WORDS, 0, 0)),
        "words that do not sum to 2^64": ((WORDS, 0), (5, 6)),
        "negative words": ((WORDS, 0), (WORDS + 1, -1)),
    }
    pin_messages(
        {what: partial(GivenChannel.from_matrix, np.array(matrix)) for what, matrix in matrices.items()}
        | {what: partial(GivenChannel, rows) for what, rows in words.items()}
    )
