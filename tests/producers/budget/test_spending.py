"""Budgets are charged exactly over restarts, periods, clocks set back and changed parameters."""

import os

import numpy as np
import pytest
from hypothesis import given, settings

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.budget.charging import OPEN
from deniable.producers.budget.client_balance import CLIENT_BALANCE
from deniable.producers.storage.store import LOG_BYTES, StoreError
from tests.support.producers.charges import (
    ALLOWANCES,
    DAY,
    KRR_MECHANISM,
    NOON,
    STEPS,
    Charges,
    allowance,
    check_against_model,
    clients_of,
    limit,
    window_of,
)

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)


@pytest.fixture
def ledger(tmp_path):
    ledger = Charges(tmp_path / "data", allowance())
    yield ledger
    ledger.store.close()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_charging_equals_a_model_that_counts_one_by_one(tmp_path_factory, steps):
    """With arbitrary batches, restarts, clocks and changes of parameters; the model forgets no window."""
    ledger = Charges(tmp_path_factory.mktemp("ledger"), ALLOWANCES[0])
    check_against_model(ledger, steps)
    ledger.store.close()


def test_client_reports_as_often_as_its_budget_allows(ledger):
    allowed = limit(allowance(), 0.0)
    assert 3 < allowed < 40
    assert ledger.spend(1, 40) == allowed
    size = CLIENT_BALANCE.itemsize + allowed * OPEN.itemsize
    assert ledger.store.rows("SELECT length(spent) FROM spending_1") == [(size,)]
    assert ledger.spend(1, 40) == 0
    refused = ledger.charge([1, 2])
    assert (refused.accepted.tolist(), refused.refused()["over_budget"]) == ([False, True], 1)
    spent = ledger.spending.spent(clients_of([1])[0], NOON)["answers"]
    assert spent.reports == spent.lifetime_reports == allowed
    assert spent.epsilon == allowance().epsilon(allowed) <= 4.0
    assert ledger.spending.used(NOON)["answers"] == spent.epsilon / 4.0


def test_one_window_takes_one_report_of_a_client(ledger):
    charged = ledger.charge([1, 1, 2, 1])
    assert charged.accepted.tolist() == [True, False, True, False]
    assert charged.refused()["over_window"] == 2
    assert ledger.charge([1, 2, 3]).accepted.tolist() == [False, False, True]


def test_new_period_begins_at_its_multiple_and_lifetime_continues(ledger):
    allowed = ledger.spend(1, 40)
    midnight = NOON + DAY // 2
    assert ledger.spend(1, 40, midnight - 1) == 0
    assert ledger.spend(1, 40, midnight) == allowed
    spent = ledger.spending.spent(clients_of([1])[0], midnight)["answers"]
    assert (spent.reports, spent.lifetime_reports) == (allowed, 2 * allowed)
    assert spent.epsilon < 4.0 < spent.lifetime_epsilon


def test_clock_set_back_refunds_nothing(ledger):
    ledger.spend(1, 40, NOON + DAY)
    windows = window_of(NOON + DAY) + 6000 + 60 * np.arange(3)
    assert ledger.charge([1] * 3, NOON, windows).refused()["over_budget"] == 3
    assert ledger.charge([1] * 3, NOON - 10 * DAY, windows).refused()["over_budget"] == 3


def test_remaining_budget_is_spent_once_whatever_the_clock(ledger):
    """Two reports tomorrow, one today, the rest tomorrow: in total the reports of one period."""
    allowed, tomorrow = limit(allowance(), 0.0), NOON + DAY
    assert ledger.spend(1, 2, tomorrow) == 2
    assert ledger.charge([1], NOON, [window_of(tomorrow) + 6000]).accepted.all()
    windows = window_of(tomorrow) + 9000 + 60 * np.arange(40)
    assert ledger.charge([1] * 40, tomorrow, windows).accepted.sum() == allowed - 3


@pytest.mark.parametrize("seconds", [60, DAY // 24, 30 * DAY])
def test_other_period_length_refunds_nothing(ledger, seconds):
    ledger.spend(1, 40)
    ledger.open(allowance(budget=(4.0, seconds)))
    later = NOON + 7200
    assert ledger.spend(1, 5, later) == 0


def test_longer_period_counts_the_shorter_ones_within_it(ledger):
    """Daily reports, then periods of 30 days: earlier spending counts until the first of these ends."""
    start = NOON // (30 * DAY) * 30 * DAY + DAY // 2
    ledger.open(allowance(), now=start)
    daily = [ledger.spend(1, 2, start + day * DAY) for day in range(12)]
    assert daily == [2] * 12
    monthly = allowance(budget=(4.0, 30 * DAY))
    ledger.open(monthly, now=start + 12 * DAY)
    assert ledger.spend(1, 5, start + 12 * DAY) == 0
    spent = ledger.spending.spent(clients_of([1])[0], start + 12 * DAY)["answers"]
    assert (spent.reports, spent.epsilon) == (24, monthly.epsilon(24))
    end = start - DAY // 2 + 30 * DAY
    assert ledger.spend(1, 40, end - 1) == 0
    assert ledger.spend(1, 40, end) == limit(monthly, 0.0)


def test_longer_period_ignores_spending_that_ended_before_it(ledger):
    """A client without reports since the longer period began has its whole budget."""
    start = NOON // (30 * DAY) * 30 * DAY
    ledger.open(allowance(), now=start - DAY)
    ledger.spend(1, 40, start - DAY)
    ledger.open(allowance(budget=(4.0, 30 * DAY)), now=start + DAY)
    assert ledger.spend(1, 40, start + DAY) == limit(allowance(), 0.0)


def test_day_without_budget_does_not_hide_the_days_before(ledger):
    """Daily periods, no budget, then periods of 30 days: reports of the daily periods count in the last."""
    start = NOON // (30 * DAY) * 30 * DAY
    ledger.open(allowance(), now=start)
    assert ledger.spend(1, 4, start) == ledger.spend(1, 4, start + DAY) == 4
    ledger.open(allowance(budget=None), now=start + 2 * DAY)
    assert ledger.spend(1, 1, start + 2 * DAY) == 1
    ledger.open(allowance(budget=(4.0, 30 * DAY)), now=start + 3 * DAY)
    spent = ledger.spending.spent(clients_of([1])[0], start + 3 * DAY)["answers"]
    assert spent.reports == spent.lifetime_reports == 9


def test_longer_period_counts_all_carried_spending(ledger):
    """Two reports, on the next day one under other parameters, then periods of 30 days: all three count."""
    start = NOON // (30 * DAY) * 30 * DAY
    halved = KRR.from_epsilon(100, 0.5)
    daily, monthly = allowance(halved), allowance(halved, budget=(8.0, 30 * DAY))
    ledger.open(allowance(), now=start)
    assert ledger.spend(1, 2, start) == 2
    ledger.open(daily, now=start + DAY)
    assert ledger.spend(1, 1, start + DAY) == 1
    assert ledger.spending.spent(clients_of([1])[0], start + DAY)["answers"].epsilon == daily.epsilon(1)
    ledger.open(monthly, now=start + 2 * DAY)
    spent = ledger.spending.spent(clients_of([1])[0], start + 2 * DAY)["answers"]
    assert spent.reports == spent.lifetime_reports == 1
    assert spent.epsilon == spent.lifetime_epsilon == 2 * KRR_MECHANISM.epsilon + monthly.epsilon(1)


def test_two_lengths_of_periods_side_by_side_refund_nothing(tmp_path):
    """Two processes take turns during a roll-out: in total the reports of the longer period."""
    short, long = allowance(), allowance(budget=(4.0, 30 * DAY))
    start = NOON // (30 * DAY) * 30 * DAY
    first, second = Charges(tmp_path, short, now=start), Charges(tmp_path, long, now=start)
    accepted = 0
    for now in range(start, start + 20 * DAY, DAY):
        accepted += first.spend(1, 1, now)
        accepted += int(second.charge([1], now, [window_of(now) + 6000]).accepted.sum())
    assert accepted == limit(long, 0.0)
    first.store.close()
    second.store.close()


def test_new_budget_counts_earlier_reports(tmp_path):
    ledger = Charges(tmp_path, allowance(budget=None))
    assert ledger.spend(1, 1000) == 1000
    ledger.open(allowance())
    assert ledger.spend(1, 5, NOON + 3600) == 0
    assert ledger.spend(1, 5, NOON + DAY) == 5
    ledger.store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "memoize"),
    [(KRR.from_epsilon(100, 0.5), False), (KRR.from_epsilon(50, 1.0), False), (BLOOM, True)],
)
def test_changed_parameters_refund_nothing(ledger, other, memoize):
    ledger.spend(1, 40)
    before = ledger.spending.spent(clients_of([1])[0], NOON)["answers"]
    ledger.open(allowance(other, memoize=memoize))
    assert ledger.spend(1, 5, NOON + 4000) == 0
    spent = ledger.spending.spent(clients_of([1])[0], NOON)["answers"]
    assert spent.reports == 0
    assert spent.epsilon >= max(before.epsilon, 4.0)
    assert spent.lifetime_epsilon >= before.lifetime_epsilon
    assert ledger.spending.used(NOON)["answers"] == 1.0


def test_changed_parameters_keep_the_remaining_budget(tmp_path):
    """Two reports of 1 carry 2 of 8: the rest allows as many reports as a budget of 6."""
    ledger = Charges(tmp_path, allowance(budget=(8.0, DAY)))
    ledger.spend(1, 2)
    halved = KRR.from_epsilon(100, 0.5)
    ledger.open(allowance(halved, budget=(8.0, DAY)))
    expected = limit(allowance(halved, budget=(6.0, DAY)), 0.0)
    assert limit(allowance(halved, budget=(5.8, DAY)), 0.0) <= ledger.spend(1, 500, NOON + 600) <= expected
    ledger.store.close()


def test_carried_loss_of_memoized_reports_is_capped(tmp_path):
    """At what holds whatever the values did: one permanent response of each of a known number of values."""
    hot = HotRappor.from_probabilities(3, 1, 0.5, 0.25, 0.75)
    for mechanism, cost in ((hot, 3 * hot.epsilon_inf), (BLOOM, 100 * BLOOM.epsilon)):
        ledger = Charges(tmp_path / mechanism.name, allowance(mechanism, budget=(20.0, DAY), memoize=True))
        assert ledger.spend(1, 100) == 100
        ledger.open(allowance(budget=(20.0, DAY)))
        spent = ledger.spending.spent(clients_of([1])[0], NOON)["answers"]
        assert spent.epsilon == spent.any_epsilon == pytest.approx(cost, rel=1e-6)
        assert spent.epsilon >= cost
    ledger.store.close()


def test_old_and_new_parameters_side_by_side_refund_nothing(tmp_path):
    """Two processes during a roll-out: each carries the other's counts."""
    old, new = allowance(), allowance(KRR.from_epsilon(100, 0.9))
    first, second = Charges(tmp_path, old), Charges(tmp_path, new)
    accepted = 0
    for number, ledger in enumerate([first, second] * 20):
        accepted += int(ledger.charge([1], NOON, [window_of(NOON) + 60 * number]).accepted.sum())
    assert 3 <= accepted <= limit(old, 0.0)
    first.store.close()
    second.store.close()


def test_collections_have_separate_budgets(tmp_path):
    ledger = Charges(tmp_path, allowance(), allowance(BLOOM, name="others", memoize=True))
    ledger.charge([1, 2])
    ledger.charge([1], name="others")
    spent = ledger.spending.spent(clients_of([1])[0], NOON)
    assert {name: each.reports for name, each in spent.items()} == {"answers": 1, "others": 1}
    assert ledger.spending.spent(clients_of([3])[0], NOON)["others"].lifetime_epsilon == 0.0
    ledger.store.close()


def test_largest_ratio_survives_reopening_until_its_period_ends(ledger):
    assert ledger.spending.used(NOON)["answers"] == 0.0
    ledger.spend(1, 2)
    ledger.charge([2])
    share = allowance().epsilon(2) / 4.0
    assert ledger.spending.used(NOON)["answers"] == share
    ledger.open(allowance())
    assert ledger.spending.used(NOON)["answers"] == share
    assert ledger.spending.used(NOON + DAY)["answers"] == 0.0
    ledger.charge([3], NOON + DAY)
    assert ledger.spending.used(NOON + DAY)["answers"] == allowance().epsilon(1) / 4.0
    ledger.open(allowance(budget=None))
    assert ledger.spending.used(NOON) == {}


def test_undone_transaction_charges_nothing(ledger):
    class Undo(Exception):
        pass

    def charge_and_fail():
        with ledger.store.transaction():
            ledger.spending.charge("answers", clients_of([1]), np.array([window_of(NOON)]), NOON)
            raise Undo

    with pytest.raises(Undo):
        charge_and_fail()
    assert ledger.charge([1]).accepted.all()


@pytest.mark.parametrize(
    "length",
    [0, CLIENT_BALANCE.itemsize - 1, CLIENT_BALANCE.itemsize + 1, CLIENT_BALANCE.itemsize - OPEN.itemsize],
)
def test_damaged_row_is_reported_on_read(ledger, length):
    ledger.charge([1])
    ledger.store.rows("UPDATE spending_1 SET spent = zeroblob(?)", length)
    for read in (lambda: ledger.charge([1]), lambda: ledger.open(allowance())):
        with pytest.raises(StoreError, match="producer"):
            read()


def test_empty_batch_charges_nothing(ledger):
    assert len(ledger.charge([]).accepted) == 0


def test_reports_are_charged_in_the_given_order(ledger):
    numbers = [3, 1, 2, 1, 3, 3, 2**62, 1]
    windows = [window_of(NOON) + 60 * offset for offset in (0, 0, 0, 1, 0, 1, 0, 1)]
    charged = ledger.charge(numbers, windows=windows)
    assert charged.accepted.tolist() == [True, True, True, True, False, True, True, False]
    spent = [ledger.spending.spent(clients_of([number])[0], NOON)["answers"].reports for number in (1, 2, 3)]
    assert spent == [2, 1, 2]


@pytest.mark.slow
def test_disk_and_rate_for_many_clients(tmp_path):
    """At most 100 bytes a client without the log, and at least a tenth of the documented rate."""
    count, batch = 100_000, 20_000
    ledger = Charges(tmp_path / "data", allowance())
    best = 0.0
    for start in range(0, count, batch):
        numbers = np.arange(start, start + batch)
        begun = os.times()
        assert ledger.charge(numbers).accepted.all()
        ended = os.times()
        best = max(best, batch / max(1e-9, ended.user + ended.system - begun.user - begun.system))
    assert best >= 20_000
    size = sum(path.stat().st_size for path in (tmp_path / "data").iterdir())
    assert size <= 100 * count + LOG_BYTES + 2 * 2**20
    ledger.store.close()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["producer.sqlite"]
