"""Composition over windows of shuffled reports."""

from functools import partial

import pytest

from deniable.estimators.accounting.shuffling import windows as module
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.accounting.shuffling.windows import windows_epsilon
from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages

BLANKET = blanket_of(KRR.from_epsilon(16, 1.0))


def test_one_window_is_one_report() -> None:
    assert windows_epsilon(BLANKET, 10_000, 1e-6, 1) == shuffled_epsilon(BLANKET, 10_000, 1e-6).high


@pytest.mark.slow
def test_windows_add_up_to_less_than_their_sum_and_more_than_one() -> None:
    one, four, thirty = (windows_epsilon(BLANKET, 10_000, 1e-6, windows) for windows in (1, 4, 30))
    assert 1.9 * one < four < 2.5 * one
    assert 2.5 * four < thirty < 30 / 4 * four


@pytest.mark.all
def test_a_finer_lattice_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse = windows_epsilon(BLANKET, 10_000, 1e-6, 4)
    monkeypatch.setattr(module, "STEPS", 512)
    fine = windows_epsilon(BLANKET, 10_000, 1e-6, 4)
    assert 0.98 * coarse < fine <= coarse * 1.001


def test_few_reports_cost_no_more_than_unshuffled_ones() -> None:
    assert windows_epsilon(BLANKET, 1, 1e-9, 3) <= 3.0000001


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {f"{each} windows": partial(windows_epsilon, BLANKET, 10, 1e-6, each) for each in (0, 10_001)}
    )
