"""The unconstrained estimate beside the published one: the truth of expected counts, in the same order."""

import numpy as np
import pytest

from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.decoding.hashed.listed import decode_listed
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.frequency import krr
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor


def test_unbiased_shares_of_expected_counts_are_the_truth() -> None:
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    for mechanism in (KRR.from_epsilon(4, 1.0), LongitudinalKRR.from_epsilons(4, 4.0, 1.0)):
        counts = np.rint(1e12 * (shares * mechanism.contrast + mechanism.q)).astype(np.int64)
        assert krr.estimate(counts, mechanism).unbiased == pytest.approx(shares, abs=1e-10)


def test_unbiased_shares_of_pairs_and_bits_are_inverted_reports() -> None:
    rng = np.random.default_rng(2)
    pair = PairKRR(KRR.from_epsilon(2, 2.0), KRR.from_epsilon(3, 2.0))
    found = estimate_pair(rng.integers(1000, 2000, 6), pair).unbiased
    assert found is not None
    assert (len(found), found.sum()) == (6, pytest.approx(1))
    hot = HotRappor.from_probabilities(5, 1, 0.25, 0.35, 0.65)
    ones, sizes = rng.integers(3500, 6400, (1, hot.bits)), np.array([10_000])
    inverted = (ones[0, :5] / 1e4 - hot.p_star) / (hot.q_star - hot.p_star)
    assert decode_hot(ones, sizes, hot).unbiased == pytest.approx(inverted)


def test_unbiased_shares_of_hashes_are_clipped_to_the_published_ones() -> None:
    rng = np.random.default_rng(3)
    hashing, tree = LocalHash.from_epsilon(2.0, 64), PrefixTree.from_epsilon((1, 2), 2.0, 160)
    names = ["a", "b", "c"]
    for estimate in (
        decode_hashed(rng.integers(50, 60, hashing.width), names, hashing, 7),
        decode_listed(rng.integers(20, 40, (2, tree.width)), names, tree, 5),
    ):
        assert estimate.unbiased is not None
        assert np.clip(estimate.unbiased, 0, 1).tolist() == estimate.frequency.tolist()
        assert (estimate.unbiased != 0).all()
