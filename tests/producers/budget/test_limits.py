"""Limits and the largest share of a budget, which stay known while the store is closed."""

import numpy as np
import pytest

from deniable.config.settings.allowance import LEVELS, UNLIMITED, Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.client_balance import CLIENT_BALANCE
from deniable.producers.budget.limits import CollectionLimits, UnknownLimitError
from tests.support.messages import PinMessages

ALLOWANCE = Allowance(Collection("answers", KRR.from_epsilon(100, 1.0)), Budget(8.0, 1e-6, 100))


def balances(*each):
    """Balances of (reports, carried) in the period that ends at 100."""
    rows = np.zeros(len(each), CLIENT_BALANCE)
    rows["until"] = 100
    rows["reports"], rows["carried"] = zip(*each, strict=True)
    return rows


def test_unknown_limit_is_computed_once(pin_messages: PinMessages) -> None:
    limits, carried = CollectionLimits(ALLOWANCE), np.array([0.0, 0.99, 2.99, 0.99])
    for level in (8, 24):
        with pytest.raises(UnknownLimitError, match=str(level)) as unknown:
            limits.limits(carried)
        if level == 24:
            pin_messages({"a limit was not computed": lambda: limits.limits(carried)})
        unknown.value.find()
    assert limits.limits(carried).tolist() == ALLOWANCE.limits(ALLOWANCE.levels(carried)).tolist()
    assert limits.limits(np.zeros(3)).tolist() == ALLOWANCE.limits(np.zeros(3, np.int64)).tolist()


def test_reports_without_budget_are_unlimited():
    assert (
        CollectionLimits(Allowance(ALLOWANCE.collection, None)).limits(np.array([0.0, 9.0])).tolist()
        == [UNLIMITED] * 2
    )


def test_largest_share_belongs_to_the_greatest_spender():
    limits = CollectionLimits(ALLOWANCE)
    assert limits.largest_ratio(50.0) == 0.0
    limits.note(balances((5, 0.0), (3, 0.0)))
    assert limits.largest_ratio(50.0) == ALLOWANCE.epsilon(5) / 8.0
    limits.note(balances((4, 0.99), (2, 1.99)))
    shares = [
        ALLOWANCE.epsilon(5) / 8,
        8 / LEVELS + ALLOWANCE.epsilon(4) / 8,
        16 / LEVELS + ALLOWANCE.epsilon(2) / 8,
    ]
    assert limits.largest_ratio(50.0) == max(shares)
    limits.note(balances((60, 0.0)))
    assert limits.largest_ratio(50.0) == min(1.0, ALLOWANCE.epsilon(60) / 8)
    assert limits.largest_ratio(100.0) == 0.0


def test_dominated_clients_are_skipped(monkeypatch):
    asked, epsilon = [], Allowance.epsilon
    monkeypatch.setattr(
        Allowance, "epsilon", lambda self, reports: asked.append(reports) or epsilon(self, reports)
    )
    limits = CollectionLimits(ALLOWANCE)
    limits.note(balances((5, 0.0), (4, 0.99), (5, 1.99)))
    assert limits.largest_ratio(50.0) == 16 / LEVELS + epsilon(ALLOWANCE, 5) / 8
    assert asked == [5]


def test_early_closing_warns_once_each_time():
    limits = CollectionLimits(ALLOWANCE)
    limits.seconds_ahead = 300
    assert limits.warning() is None
    for _ in range(2):
        limits.seconds_ahead = 301
        assert limits.warning() == (
            "collection answers: windows close 301 s too early by this machine's clock, and until then "
            "reports of known clients may be refused as too_late: the clock was ahead or is behind (correct "
            "it), or windows or grace were shorter (stop producers that still use the former ones with this "
            "folder)"
        )
        assert limits.warning() is None
        limits.seconds_ahead = 0
        assert limits.warning() is None
