"""The simulated coverage of pairs counts what intervals hold, and its table shows it."""

import numpy as np
import pytest

from bench.estimators.pairs.coverage import (
    MECHANISMS,
    TABLES,
    PairCell,
    pair_cell,
    rejected_share,
    summary,
    true_pairs,
)
from bench.estimators.populations import channel_counts
from deniable.estimators.mechanisms.matrix.pair import PairKRR


def test_reports_of_pairs_follow_the_channel():
    """10 standard deviations of the commonest count, 2,000: a false alarm in 1e-20 of seeds."""
    mechanism = PairKRR.from_epsilons(3, 2, 1.0, 1.0)
    truth = np.full((3, 2), 1000)
    counts = channel_counts(truth, mechanism, np.random.default_rng(1))
    assert counts.sum() == truth.sum()
    assert np.abs(counts - mechanism.channel @ truth.ravel()).max() < 10 * np.sqrt(2000)


def test_true_pairs_are_the_same_each_time():
    for table in TABLES:
        truth = true_pairs(table, (4, 3), 1000)
        assert (truth.shape, truth.sum()) == ((4, 3), 1000)
        np.testing.assert_array_equal(truth, true_pairs(table, (4, 3), 1000))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_cell_has_a_share_of_each_kind_of_interval(mechanism):
    found = pair_cell(mechanism, (4, 3), 4.0, 10_000, "independent", runs=3)
    assert found.known == 1
    assert all(0.5 < each <= 1 for each in (found.joint, found.conditional, found.margin))
    assert found.least <= found.joint


def test_summary_weighs_conditional_shares_by_those_known():
    cells = [PairCell(0.95, 0.9, 1.0, 0.25, 0.99, 0.94), PairCell(0.97, 0.9, 0.9, 0.75, 0.98, 0.96)]
    assert list(cells[0].row().values()) == ["95.0", "90.0", "100.0", "25.0", "99.0", "94.0"]
    assert summary(cells, [12, 12]) == "Joint 96.0 %, conditional 92.5 %, first margin 95.0 %."


@pytest.mark.parametrize("table", TABLES)
def test_no_pair_is_negative(table):
    assert true_pairs(table, (16, 3), 10_000).min() >= 0


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_independent_fields_are_seldom_rejected(mechanism):
    """400 samples: 5 % and 5 deviations of .011; a test at 15 % would be seen."""
    assert rejected_share(mechanism, (4, 3), 2.0, 5000, samples=400) < 0.105


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("size", "reports"),
    [
        ((17, 105), 100),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in (((17, 3), 100), ((17, 105), 1000))),
    ],
)
def test_independent_fields_are_seldom_rejected_with_few_reports(mechanism, size, reports):
    """1,000 samples: 5 % and 5 deviations of .0069, which fails with 1e-6.

    Without joined values 100 reports of 17 x 105 values would be rejected in 13 % by k-rr-pair, those of
    17 x 3 values in 30 % by one-hot-pair; and if it joined the rarest with the rarest, 17 x 105 in 23 %.
    """
    assert rejected_share(mechanism, size, 8.0, reports, samples=1000) < 0.085


@pytest.mark.nightly
def test_conditional_shares_cover_where_rows_are_noisy():
    """120 runs of 48 shares, of which noise hides two thirds: 95 % with a deviation of .006 between seeds.

    So it fails with 1e-4. Rows chosen because noise lifts them over 4 standard errors would cover 90 %.
    """
    cell = pair_cell("one-hot-pair", (16, 3), 1.0, 10_000, "uneven", runs=120)
    assert cell.known > 0.2
    assert cell.every > cell.conditional
    assert cell.conditional > 0.925
