"""The client limits that the page shows are those that producers enforce."""

from deniable.config.settings.allowance import Allowance, Budget
from deniable.deploy.cluster.deployment import limits_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor

COARSE = Collection(name="coarse", mechanism=KRR.from_epsilon(4, 1.0))
PERMANENT = Collection(
    name="permanent", mechanism=Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True
)


def test_budget_is_reported_with_the_reports_that_it_allows() -> None:
    limits = limits_of(Allowance(COARSE, Budget(10.0, 1e-6, 86_400), 3))
    assert (limits.per_window, limits.budget) == (3, (10.0, 1e-6, 86_400))
    assert limits.per_period() == 10
    assert limits_of(Allowance(COARSE, Budget(0.5, 1e-6, 60))).per_period() == 0


def test_budget_above_the_permanent_bound_allows_any_number() -> None:
    assert limits_of(Allowance(PERMANENT, Budget(8.0, 1e-6, 60, values="unchanged"))).per_period() is None


def test_changes_of_bucket_are_those_of_the_budget() -> None:
    """With two changes of at most 3 of 7 buckets, 12 nats cover any number of reports; all 7 not."""
    words = Collection("words", LongitudinalHash.from_epsilons(4.0, 1.0, hash_buckets=7), memoize=True)
    few = limits_of(Allowance(words, Budget(12.0, 1e-6, 60, 2, "any")))
    assert (few.changes, few.per_period()) == (2, None)
    any_number = limits_of(Allowance(words, Budget(12.0, 1e-6, 60, values="any")))
    assert any_number.changes is None
    assert any_number.per_period() is not None


def test_collection_without_budget_shows_none() -> None:
    assert limits_of(Allowance(COARSE, None)).budget is None
