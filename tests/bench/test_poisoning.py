"""The bias formulas agree with simulated windows, and the documented table with the measured one."""

import numpy as np
import pytest

from bench.poisoning import forgeries, poisoning
from bench.poisoning.poisoning import RAPPOR_MECHANISM, krr_row, rappor_row
from bench.sections import FOLDER, rows_of, table
from tests.support.paths import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "poisoning.md"


@pytest.mark.parametrize("forger", forgeries.KRR_FORGERS)
def test_krr_bias_matches_the_formula(forger):
    """Within 5 standard errors, false alarm 6e-7; a formula without theta is more than 10 off."""
    row = krr_row(np.random.default_rng(1), forger, 0.5, windows=200)
    assert abs(row.measured - row.formula) < 5 * row.error
    assert row.error < 0.1 * 0.5 * poisoning.THETA


@pytest.mark.slow
def test_rappor_bias_matches_the_formula(monkeypatch):
    monkeypatch.setattr(poisoning, "REPORTS", 20_000)
    row = rappor_row(np.random.default_rng(2), "careful", 0.1, windows=4)
    poisoning._window_before.cache_clear()
    assert row.formula == pytest.approx(0.1 * (2.75 - poisoning.THETA), abs=0.001)
    assert abs(row.measured - row.formula) < 0.04


def test_careful_forgeries_have_honest_popcounts():
    rng, truth = np.random.default_rng(3), np.full(20, 1000)
    window = forgeries.rappor_window(rng, poisoning.WORDS, truth, 20_000, "careful", 3, RAPPOR_MECHANISM)
    error = np.hypot(*(each.std() / np.sqrt(len(each)) for each in (window.honest, window.forged)))
    # Where hashes collide, an honest report has up to 0.225 ones fewer.
    assert abs(window.forged.mean() - window.honest.mean()) < 5 * error + 0.225


def test_document_contains_the_measured_table():
    _, _, *rows = table(rows_of(FOLDER / "poisoning.md", "poisoning")).splitlines()
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8")


def test_table_omits_what_does_not_apply():
    row = list(krr_row(np.random.default_rng(4), "target", 0.1, windows=20).shown().values())
    assert row[:4] == ["k-RR", "target", "10%", "+39.60 %"]
    assert str(row[4]).startswith("+39.")
    assert row[6:8] == ["", ""]
    assert row[-1] == "100%"
