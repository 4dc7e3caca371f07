"""Scores of decoders: found and false candidates, total variation."""

import numpy as np
import pytest

from bench.comparison.decoding.decoded import Decoding, held_above, scores, total_variation
from bench.comparison.decoding.decoding import ASKED, Decoder, compared
from bench.comparison.decoding.rappor_windows import build
from bench.comparison.timing.contestant import Contestant

TRUTH = np.array([0.6, 0.4, 0.0, 0.0, 0.0])


def test_held_candidates_and_decoys_are_counted_separately():
    found = scores(
        Decoding(np.array([0.5, 0.0, 0.2, 0.1, 0.0]), np.array([True, True, True, False, False])), TRUTH
    )
    assert (found.held_reported, found.decoys_reported) == (2, 1)
    assert (found.held_above_zero, found.decoys_above_zero) == (1, 2)


@pytest.mark.parametrize(
    ("shares", "variation"),
    [
        (TRUTH, 0),
        (np.zeros(5), 1),
        (2 * TRUTH, 0),
        (np.array([0.6, 0.2, 0, 0, 0]), 0.2),
        (np.array([0.6, 0.2, 0.2, 0, 0]), 0.2),
        (np.array([0, 0, 1.0, 0, 0]), 1),
    ],
)
def test_total_variation_counts_missing_mass_as_another_value(shares, variation):
    assert total_variation(shares, TRUTH) == pytest.approx(variation, abs=1e-15)


def test_held_candidates_beside_as_many_decoys():
    shares = np.array([0.3, 0.1, 0.2, 0.05, 0.0])
    assert [held_above(shares, TRUTH, decoys) for decoys in range(4)] == [1, 2, 2, 2]
    assert held_above(np.zeros(5), TRUTH, 2) == 0


def test_window_has_the_format_of_the_decoder(tmp_path):
    """Exact: files have one row for each bit of each cohort, and the truth covers all reports."""
    windows = build(tmp_path, 120, 2, ASKED)
    with np.load(windows.window(0)) as kept, np.load(windows.design) as design:
        assert kept["sizes"].sum() == 1_000_000
        assert kept["ones"].shape == (2, 128)
        assert kept["rates"].shape == (256,) == design["shape"][:1]
        # Each candidate sets 1 or 2 bits in each cohort, so debiased shares of a cohort's bits sum to that.
        assert 1.5 < kept["rates"].sum() / 2 < 2.1
    assert windows.truth.sum() == pytest.approx(1)
    assert (windows.truth > 0).sum() == 100


@pytest.mark.slow
def test_missing_peer_has_a_row_with_the_reason(tmp_path):
    windows = build(tmp_path, 300, 8, ASKED)
    with Contestant("ours.estimation_runner") as mine, Contestant("absent_runner") as absent:
        mine_row, theirs = compared(windows, mine, [Decoder(absent, "decode", {}, "nnls", "")], 2)
    assert (mine_row["by"].partition(" ")[0], mine_row["windows"]) == ("deniable", 2)
    assert 0 < mine_row["total variation"] < 0.5
    assert mine_row["decoys reported"] < mine_row["decoys above 0"]
    assert (theirs["ms"], theirs["windows"], theirs["total variation"]) == ("", 0, "")
    assert "absent_runner" in theirs["does"]
