"""A mechanism rebuilt at another epsilon keeps its other parameters and costs at most that epsilon."""

import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism, OneStep, at_epsilon, epsilon_range
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.planning import best_one_hot, expected_std_error
from tests.support.messages import PinMessages

MECHANISMS: list[Mechanism] = [
    KRR.from_epsilon(2, 1.0),
    KRR.from_epsilon(1_000_000, 0.05),
    KRR.from_epsilon(16, 15.9),
    LongitudinalKRR.from_epsilons(16, 2.0, 1.0),
    LongitudinalKRR.from_epsilons(3, 16.0, 1.0),
    LongitudinalKRR.from_epsilons(4, 0.05, 0.01),
    LocalHash.from_epsilon(1.0),
    LocalHash.from_epsilon(4.0, 1000, 53),
    PrefixTree.from_epsilon((2, 4, 6), 2.0),
    LongitudinalHash.from_epsilons(4.0, 2.0),
    LongitudinalHash.from_epsilons(2.0, 1.0, 1000, 7),
    Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65),
    Rappor.from_probabilities(128, 16, 8, 0.01, 0.35, 0.65),
    Rappor.from_probabilities(128, 2, 8, 0.0, 0.35, 0.65),
    HotRappor.from_probabilities(105, 1, 0.5, 0.5, 0.75),
    HotRappor.from_probabilities(105, 3, 0.0, 0.25, 0.75),
    SquareWave.from_epsilon(-1.0, 1.0, 256, 1.0),
    PairKRR.from_epsilons(17, 3, 1.0, 1.5),
    OneHotPair.from_epsilon(17, 105, 1.0),
    PairKRR.from_epsilons(2, 900, 0.02, 15.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@settings(max_examples=20)
@given(st.floats(0, 1))
def test_at_epsilon_reaches_epsilon_and_keeps_other_parameters(mechanism: Mechanism, place: float) -> None:
    """Never above the requested epsilon and close to it; the cost of all reports of a value does not rise."""
    least, most = epsilon_range(mechanism)
    asked = min(most, max(least, math.exp(math.log(least) + place * math.log(most / least))))
    rebuilt = at_epsilon(mechanism, asked)
    assert asked * (1 - 1e-4) <= rebuilt.epsilon <= asked
    assert (type(rebuilt), rebuilt.cohorts) == (type(mechanism), mechanism.cohorts)
    if isinstance(rebuilt, SquareWave) and isinstance(mechanism, SquareWave):
        assert rebuilt.edges.tolist() == mechanism.edges.tolist()
        return
    if isinstance(rebuilt, LongitudinalHash) and isinstance(mechanism, LongitudinalHash):
        assert 0.9 * mechanism.hash_functions < rebuilt.hash_functions <= mechanism.hash_functions
        return
    if isinstance(rebuilt, LocalHash | PrefixTree):
        assert 0.97 * mechanism.width < rebuilt.width <= mechanism.width
    else:
        assert rebuilt.width == mechanism.width
    if not isinstance(rebuilt, OneStep) and not isinstance(mechanism, OneStep):
        assert rebuilt.epsilon_inf <= mechanism.epsilon_inf


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_larger_epsilon_has_a_smaller_error(mechanism: Mechanism) -> None:
    least, most = epsilon_range(mechanism)
    steps = [least * (most / least) ** (step / 10) for step in range(11)]
    errors = [expected_std_error(at_epsilon(mechanism, min(step, most)), 1000) for step in steps]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each.epsilon > 0.1], ids=str)
def test_rebuilding_at_its_own_epsilon_does_not_raise_the_error(mechanism: Mechanism) -> None:
    least, most = epsilon_range(mechanism)
    assert least <= mechanism.epsilon <= most
    again = at_epsilon(mechanism, mechanism.epsilon)
    assert expected_std_error(again, 1000) <= expected_std_error(mechanism, 1000) * (1 + 1e-4)


def test_without_permanent_response_it_is_optimized_unary_encoding() -> None:
    mechanism = HotRappor.from_probabilities(105, 1, 0.0, 0.25, 0.75)
    assert at_epsilon(mechanism, 1.5) == best_one_hot(105, 1.5)


def test_messages(pin_messages: PinMessages) -> None:
    wrong = (0.05, 10.1, -1.0, math.inf, math.nan)
    pin_messages({f"epsilon is {each}": partial(at_epsilon, MECHANISMS[0], each) for each in wrong})
