"""What `check --json` says of a collection."""

import math

import pytest

from deniable.config.describe import describe
from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import Allowance, Budget, BudgetValues
from deniable.deploy.offline.check_facts import facts_of
from deniable.deploy.offline.costs.shuffled_facts import ShuffledFacts, shuffled_sentence
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor

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
    facts = facts_of(Allowance(SITE, Budget(1000, 1e-6, 86_400, values="unchanged")))
    assert facts.epsilon_of_unchanged_value == SITE.mechanism.epsilon_inf
    assert facts.budget is not None
    assert facts.budget.reports_per_period is None
    assert facts_of(Allowance(SITE, None)).budget is None


def test_changes_and_all_buckets_of_longitudinal_hashing_are_stated() -> None:
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    words = Collection("words", mechanism, candidates=("a", "b"))
    facts = facts_of(Allowance(words, Budget(5, 1e-6, 86_400, 1, "any")))
    assert facts.budget is not None
    assert facts.budget.changes == 1
    assert facts.epsilon_of_all_buckets == mechanism.epsilon_of_all_buckets == pytest.approx(6)
    assert facts.epsilon_of_any_values_condition == "if it is known when buckets change"
    assert facts.budget.epsilon_of_any_values_condition == "if it is known when buckets change"
    few = facts_of(Allowance(words, Budget(3, 1e-6, 86_400, 1, "any"))).budget
    assert few is not None
    assert few.reports_per_period is not None
    assert few.epsilon_of_any_values_condition is None  # so few reports cost that anyway
    others = facts_of(Allowance(PLAN, Budget(8, 1e-6, 86_400)))
    assert others.budget is not None
    assert others.epsilon_of_any_values_condition is None
    assert others.budget.epsilon_of_any_values_condition is None
    assert (others.budget.changes, others.epsilon_of_all_buckets) == (None, None)


@pytest.mark.parametrize("values", ["unchanged", "any"])
def test_figures_of_any_values_name_their_condition(values: BudgetValues) -> None:
    """Of both figures: the sentences of `check` say the same."""
    allowance = Allowance(SITE, Budget(5, 1e-6, 86_400, values=values))
    facts = facts_of(allowance)
    assert facts.budget is not None
    assert facts.budget.reports_per_period is not None
    assert facts.budget.reports_per_period > 1
    condition = "if it is known when values change"
    assert facts.epsilon_of_any_values_condition == condition
    assert facts.budget.epsilon_of_any_values_condition == condition
    assert condition in describe(allowance)


def test_a_file_with_relays_says_what_shuffling_gains() -> None:
    relay = RelaySection(shuffle_reports=10_000, forged_share=0.1)
    facts = facts_of(Allowance(PLAN, None), relay).shuffled_by_relays
    assert facts is not None
    low, high = shuffled_epsilon(blanket_of(PLAN.mechanism), 9000, 1e-6)
    assert (facts.shuffled_at_least, facts.shuffled, facts.honest_reports) == (low, high, 9000)
    sentence = shuffled_sentence(facts, relay)
    assert "where 10000 reports of a cohort come, of which 9000 are honest" in sentence
    assert "against broker, edge or relay's memory nothing is gained" in sentence
    assert facts_of(Allowance(PLAN, None)).shuffled_by_relays is None


def test_shuffled_sentence_is_singular_for_one_report() -> None:
    facts = ShuffledFacts(1.0, 1.0, 1, 1e-6)
    one = shuffled_sentence(facts, RelaySection(shuffle_reports=1))
    assert "where 1 report of a cohort comes, of which 1 is honest;" in one
    assert "where 2 reports of a cohort come, of which 1 is honest;" in shuffled_sentence(
        facts, RelaySection(shuffle_reports=2)
    )


@pytest.mark.parametrize(
    ("allowance", "relay", "refused"),
    [
        (Allowance(SITE, None), RelaySection(), "are not independent draws"),
        (Allowance(PLAN, None, 2), RelaySection(), "2 reports of a client may be in one shuffle"),
        (Allowance(PLAN, None), RelaySection(shuffle_reports=0), "any number is shuffled together"),
    ],
)
def test_without_an_epsilon_of_shuffled_reports_a_sentence_says_why(
    allowance: Allowance, relay: RelaySection, refused: str
) -> None:
    facts = facts_of(allowance, relay).shuffled_by_relays
    assert facts is not None
    assert (facts.shuffled, facts.shuffled_at_least) == (None, None)
    assert refused in str(facts.refused)
    assert refused in shuffled_sentence(facts, relay)
