"""Windows closed to a client: forgotten windows never reopen, and few others are closed."""

import numpy as np
import pytest

from deniable.producers.budget.charging import OPEN, ClientRows, horizons
from deniable.producers.budget.client_balance import CLIENT_BALANCE
from tests.support.producers.charges import DAY, NOON, Charges, allowance, window_of

YEAR = 365 * DAY
MIDNIGHT = NOON - DAY // 2
DAILY = {"window_seconds": DAY, "budget": None}
FREE = {"budget": None}


@pytest.fixture
def ledger(tmp_path):
    ledger = Charges(tmp_path / "data", allowance(**FREE))
    yield ledger
    ledger.store.close()


def test_window_closes_with_its_grace(ledger):
    window = window_of(NOON)
    assert ledger.charge([1], window + 90, [window]).accepted.all()
    assert ledger.charge([2], window + 91, [window]).refused()["too_late"] == 1


def test_clock_set_back_reopens_no_forgotten_window(ledger):
    """Also with another period length, whose windows are the same, and after a restart."""
    window = window_of(NOON)
    assert ledger.charge([1], NOON, [window]).accepted.all()
    assert ledger.charge([1], NOON + 600, [window + 600]).accepted.all()
    assert ledger.charge([1], NOON, [window]).refused()["too_late"] == 1
    ledger.open(allowance())
    assert ledger.charge([1], NOON, [window]).refused()["too_late"] == 1


def test_clock_far_ahead_affects_only_clients_that_reported(ledger):
    assert ledger.charge([1], NOON).accepted.all()
    assert ledger.charge([2], NOON + YEAR).accepted.all()
    assert ledger.charge([1, 2, 3], NOON + 60).accepted.tolist() == [True, False, True]
    assert ledger.charge([1, 2, 3], NOON + 120).accepted.tolist() == [True, False, True]
    again = ledger.charge([1, 2, 3], NOON + 120)
    assert again.refused() == {"over_window": 2, "over_budget": 0, "too_late": 1}
    (warning,) = ledger.spending.warnings()
    assert f"collection answers: windows close {YEAR - 120} s too early by this machine's clock" in warning
    assert ledger.spending.warnings() == []


def test_longer_windows_open_at_once(ledger):
    assert ledger.charge([1], NOON).accepted.all()
    ledger.open(allowance(**DAILY))
    charged = ledger.charge([1, 1, 2], NOON + 5, [MIDNIGHT] * 3)
    assert (charged.accepted.tolist(), charged.refused()["over_window"]) == ([True, False, True], 1)
    assert ledger.charge([1, 2], NOON + 600, [MIDNIGHT] * 2).refused()["over_window"] == 2
    assert ledger.spending.warnings() == []


def test_shorter_windows_do_not_reopen_longer_ones(tmp_path):
    """A producer with windows of a minute forgets counts of one with windows of a day."""
    minutes, days = (Charges(tmp_path, allowance(**each)) for each in (FREE, DAILY))
    assert days.charge([1], NOON, [MIDNIGHT]).accepted.all()
    assert minutes.charge([1], NOON).accepted.all()
    assert days.charge([1], NOON, [MIDNIGHT]).refused()["too_late"] == 1
    assert days.charge([2], NOON, [MIDNIGHT]).accepted.all()
    assert days.charge([1], NOON + DAY, [MIDNIGHT + DAY]).accepted.all()
    minutes.store.close()
    days.store.close()


def test_horizon_applies_up_to_the_newest_window():
    rows = ClientRows(
        np.zeros(3, CLIENT_BALANCE), np.array([(500, 1), (900, 1), (2000, 1)], OPEN), np.array([0, 0, 2])
    )
    assert horizons(rows, 600, 600).tolist() == [600, 600, 600]
    assert horizons(rows, 600, 1000).tolist() == [900, 600, 1000]
    assert horizons(rows, 1500, 1800).tolist() == [1500, 1500, 1800]
