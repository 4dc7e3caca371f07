"""A small comparison of the poster: its simulation is right, and its checks can fail."""

from dataclasses import replace

import numpy as np
import pytest

from bench.estimators.populations import report_counts, round_to_counts, zipf_shares
from bench.estimators.poster import run_cell, summary
from deniable.estimators.mechanisms.krr import KRR

CELL = run_cell(1000, 50, 1.3, 2.0, repetitions=5)


def test_cell_passes_both_checks_and_is_reproducible():
    assert CELL.likeliest
    assert not CELL.mle_is_worst
    assert list(CELL.mse) == ["Inv", "InvN", "InvP", "MLE*"]
    assert min(CELL.loss, key=CELL.loss.__getitem__) == "Inv"
    assert run_cell(1000, 50, 1.3, 2.0, repetitions=5) == CELL


@pytest.mark.parametrize(("mse", "worst"), [(1.0, False), (2.0, False), (2.0 + 1e-10, False), (2.1, True)])
def test_mle_is_worst_only_beyond_a_tie(mse, worst):
    assert replace(CELL, mse={"Inv": 9.0, "InvN": 2.0, "InvP": 1.0, "MLE*": mse}).mle_is_worst is worst


def test_summary_counts_what_the_checks_find():
    bad = replace(CELL, mse={"Inv": 9.0, "InvN": 2.0, "InvP": 1.0, "MLE*": 4.0}, likeliest=False)
    found = summary([bad, replace(CELL, mse=CELL.mse, likeliest=True)], 5)
    assert found.missed == [
        "InvN or InvP is likelier than MLE* in 1 cells",
        "MLE* is the worst of the three in 1 cells",
    ]
    (row,) = (row for row in found.rows if row["estimator"] == "MLE*")
    assert row["at most"] == "× 4"


def test_simulated_reports_have_the_rates_of_the_channel():
    """Mean of 2,000 rounds within 5 standard errors for each of four values, false alarm 2e-6."""
    rng, mechanism = np.random.default_rng(1), KRR.from_epsilon(4, 1.0)
    truth = np.array([500, 300, 200, 0])
    rounds = np.array([report_counts(rng, truth, mechanism) for _ in range(2000)])
    assert (rounds.sum(axis=1) == 1000).all()
    expected = mechanism.channel @ truth
    variance = truth * mechanism.p * (1 - mechanism.p) + (1000 - truth) * mechanism.q * (1 - mechanism.q)
    assert (np.abs(rounds.mean(axis=0) - expected) < 5 * np.sqrt(variance / 2000)).all()
    np.testing.assert_allclose(rounds.var(axis=0), variance, rtol=0.2)


def test_whole_counts_sum_to_the_total():
    counts = round_to_counts(zipf_shares(7, 2.5), 1000)
    assert counts.sum() == 1000
    assert (np.diff(counts) <= 0).all()
