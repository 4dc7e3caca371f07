"""What a budget of memoized reports holds for: `values: unchanged` or `any`."""

from fractions import Fraction
from functools import partial

import pytest

from deniable.config.settings.allowance import UNLIMITED, Allowance, Budget
from deniable.deploy.offline.check_facts import facts_of
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import SigningKey, parse_signing_key
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import exp_above, exp_below
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from tests.edge.test_collection_list import VECTOR
from tests.support.messages import PinMessages

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
KRR_4 = LongitudinalKRR.from_epsilons(4, 4.0, 1.0)
HASHED = LongitudinalHash.from_epsilons(10.0, 1.0, None, 7)


def rule(mechanism, epsilon, values, changes=None):
    return Allowance(Collection("a", mechanism, memoize=True), Budget(epsilon, 1e-6, 86_400, changes, values))


def test_messages(pin_messages: PinMessages) -> None:
    mechanisms = {"RAPPOR": BLOOM, "longitudinal k-RR": KRR_4, "longitudinal hashing": HASHED}
    pin_messages(
        {
            f"a budget of {name} holds for unnamed values": partial(rule, each, 8.0, None)
            for name, each in mechanisms.items()
        }
        | {
            "changes of unnamed values": lambda: Budget(8.0, 1e-6, 60, 1, None),
            "changes of unchanged values": lambda: Budget(8.0, 1e-6, 60, 1, "unchanged"),
        }
    )


def test_a_budget_of_fresh_reports_holds_for_any_values():
    assert Allowance(Collection("a", KRR.from_epsilon(4, 1.0)), Budget(8.0, 1e-6, 60)).values == "any"


@pytest.mark.parametrize(("mechanism", "budget", "most"), [(BLOOM, 8.0, 4), (KRR_4, 8.0, 7)])
def test_any_values_allow_fewer_reports(mechanism, budget, most):
    assert rule(mechanism, budget, "unchanged").unspent_limit == UNLIMITED
    free = rule(mechanism, budget, "any")
    assert free.unspent_limit == most
    assert free.epsilon(most, "any") <= budget < free.epsilon(most + 1, "any")


def test_the_edge_lists_the_limit_without_changes():
    """Browsers show any number of buckets: all 7 would cost 70."""
    allowance = rule(HASHED, 10.0, "any", 0)
    assert allowance.unspent_limit == UNLIMITED
    key: SigningKey = parse_signing_key(VECTOR["signing_key"].encode())
    text = collection_list(1, [allowance], 10, key).body.decode()
    limit = rule(HASHED, 10.0, "any").unspent_limit
    assert limit < 20
    assert f'\\"reports\\":{limit},\\"values\\":\\"any\\"' in text


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1.0986, 2.0, 7.3, 16.0])
def test_the_odds_factor_is_rounded_up(epsilon):
    allowance = Allowance(Collection("a", KRR.from_epsilon(4, epsilon)), None)
    factor = facts_of(allowance).odds_factor_per_report
    exact = exp_below(allowance.collection.mechanism.epsilon)
    assert exact < Fraction(factor) <= exact * (1 + Fraction(1, 2**51))
    assert exp_above(0.0) >= 1
