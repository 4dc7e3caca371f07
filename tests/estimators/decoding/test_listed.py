"""Listed strings of a prefix tree: the last level alone, with the error of its sample of clients."""

import numpy as np
import pytest

from bench.estimators.growth.prefix_reports import tree_counts
from deniable.estimators.decoding.hashed.listed import decode_listed
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, utf_8
from deniable.estimators.rollup.hashed import roll_up_tree
from tests.support.estimators.simulation import generator
from tests.support.messages import PinMessages

pytestmark = pytest.mark.slow

TREE = PrefixTree.from_epsilon((2, 4, 6), 8.0, 500)
TEXTS = ["tea", "coffee beans", "žito"]
CLIENTS = np.array([20_000, 12_000, 8_000])
LISTED = ["tea", "coffee", "žito", "milk"]


def counts(seed: int, key: int = 3) -> np.ndarray:
    return tree_counts(generator(seed), [utf_8(each) for each in TEXTS], CLIENTS, TREE, key)


@pytest.mark.parametrize("runs", [24, pytest.param(60, marks=pytest.mark.nightly)])
def test_shares_among_all_clients_are_covered_as_often_as_stated(runs):
    """60 windows of 4 strings: 95 % of 240 with the standard error 0.014, so 0.88 is 5 below.

    Of 24 windows it is 0.022, and 0.84 is 5 below. Without the error of the sample, they would cover 70 %.
    """
    truth, covers = np.array([0.5, 0.3, 0.2, 0.0]), []
    for run in range(runs):
        result = decode_listed(counts(run, run), LISTED, TREE, run)
        covers.append((result.low <= truth) & (truth <= result.high))
        assert result.other is not None
        assert result.other[0] < 5 * result.other[1]
    assert np.mean(covers) > (0.88 if runs == 60 else 0.84)
    assert result.reports == pytest.approx(40_000 / 3, rel=0.1)


def test_returning_clients_repeat_the_sample():
    held = counts(1)
    once, shared = (decode_listed(held, LISTED, TREE, 3, overlap) for overlap in (1.0, 9.0))
    sampled = 2 / 3 * once.frequency * (1 - once.frequency) / once.reports
    assert shared.std_error**2 - once.std_error**2 == pytest.approx(8 * sampled, rel=0.1)
    rolled = roll_up_tree(held, np.full(9, 4000), LISTED, TREE, 3)
    assert rolled.overlap == 9
    assert rolled.shared.std_error.tolist() == shared.std_error.tolist()
    assert rolled.independent.std_error.tolist() == once.std_error.tolist()


def test_no_candidates_are_an_empty_estimate():
    result = decode_listed(counts(1), [], TREE, 3)
    assert (result.frequency.shape, result.significant.shape, result.other) == ((0,), (0,), None)


def test_without_a_report_on_the_last_level_nothing_is_known():
    held = counts(1)
    held[2] = 0
    result = decode_listed(held, LISTED, TREE, 3)
    assert np.isinf(result.std_error).all()
    assert (result.low.tolist(), result.high.tolist()) == ([0.0] * 4, [1.0] * 4)


def test_messages(pin_messages: PinMessages) -> None:
    alike = ["coffee", "coffee beans"]
    pin_messages(
        {
            "candidates that the tree cannot tell apart": lambda: decode_listed(counts(1), alike, TREE, 3),
            "counts without a level": lambda: decode_listed(counts(1)[:2], LISTED, TREE, 3),
            "no reports": lambda: decode_listed(0 * counts(1), LISTED, TREE, 3),
        }
    )
