"""What `check --json` says of a collection."""

import math

import pytest

from deploy.offline.check_facts import facts_of
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor
from producers.budget.allowance import Allowance, Budget

PLAN = Collection("plan", KRR.from_epsilon(3, 2.0), values=("free", "team", "business"))
SITE = Collection("site", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)


def test_budget_states_how_many_reports_it_allows() -> None:
    facts = facts_of(Allowance(PLAN, Budget(8, 1e-6, 86_400)))
    assert facts.epsilon_per_report == PLAN.mechanism.epsilon
    assert facts.odds_factor_per_report == pytest.approx(math.exp(2))
    assert facts.epsilon_of_unchanged_value is None
    assert facts.budget is not None
    assert facts.budget.reports_per_period == 4


def test_unlimited_figures_are_none() -> None:
    facts = facts_of(Allowance(SITE, Budget(1000, 1e-6, 86_400)))
    assert facts.epsilon_of_unchanged_value == SITE.mechanism.epsilon_inf
    assert facts.budget is not None
    assert facts.budget.reports_per_period is None
    assert facts_of(Allowance(SITE, None)).budget is None
