"""A client charges reports as Python's model of charging does."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.config.settings.allowance import LEVELS, UNLIMITED, Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.edge.browser.expected import entry, signing_key
from tests.support.edge.browser.node import asked
from tests.support.producers.spending_model import SpendingModel

KEY = signing_key()


@pytest.fixture(scope="module")
def javascript():
    with asked() as answers:
        yield answers


def allowance(mechanism, budget, reports_per_window=1, window_seconds=60):
    collection = Collection("c", mechanism, window_seconds=window_seconds, grace_seconds=30)
    return Allowance(collection, budget, reports_per_window)


ALLOWANCES = [
    allowance(KRR.from_epsilon(4, 1.0), None, 2),
    allowance(KRR.from_epsilon(4, 1.0), Budget(3.5, 1e-6, 600)),
    allowance(KRR.from_epsilon(4, 2.0), Budget(5.0, 1e-6, 600), 2),
    allowance(LongitudinalKRR.from_epsilons(3, 2.0, 1.0), Budget(1.5, 1e-6, 1800, values="unchanged"), 3),
    allowance(KRR.from_epsilon(4, 1.0), Budget(3.5, 1e-6, 300)),
    allowance(LongitudinalHash.from_epsilons(2.0, 1.0), Budget(3.0, 1e-6, 600, values="any"), 2),
    allowance(SquareWave.from_epsilon(0, 1, 16, 1.0), Budget(3.5, 1e-6, 600), 2),
]
ENTRIES = [entry(each, KEY, delivery_seconds=0) for each in ALLOWANCES]


def limit(terms, carried):
    """What a client may report: Python's own number, or less if something was carried."""
    level = int(terms.levels(carried_array(carried))[0])
    if level == 0 or terms.budget is None:
        return terms.unspent_limit if terms.budget else UNLIMITED
    return math.floor(terms.budget.epsilon * (1 - level / LEVELS) / terms.epsilon_per_report)


def carried_array(carried):
    return np.array([carried])


@pytest.mark.parametrize("number", [1, 2])
def test_limit_under_carried_spending_is_never_above_pythons(number):
    terms = ALLOWANCES[number]
    for level in range(LEVELS + 1):
        carried = terms.budget.epsilon * level / LEVELS
        assert limit(terms, carried) <= int(terms.limits(terms.levels(carried_array(carried)))[0])


class DeviceModel(SpendingModel):
    """Closes windows as of the last accepted report, whatever its parameters were.

    Python's horizon also counts reports that were refused, and begins anew with a new fingerprint. Neither
    matters for the promise that `_charge` asserts: no window takes more than its reports.
    """

    _closed = 0

    def charge(self, allowance, reports, now):
        collection = allowance.collection
        earliest = int(now) - collection.window_seconds - collection.grace_seconds
        ((client, window),) = reports
        opened = max(earliest, self._closed)
        if window < opened:
            return ["too_late"]
        outcome = self._charge(allowance, client, window, opened, now)
        if outcome == "accepted":
            self._closed = opened
        return [outcome]


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, len(ALLOWANCES) - 1),
            st.sampled_from([0, 0, 1, 20, 60, 61, 300, 700, -50, -200]),
            st.sampled_from([0, 0, 0, -60, -120, 60]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_charges_are_those_of_the_model(javascript, steps):
    """Any sequence of reports, changes of parameters and steps of the clock, back too, under one name."""
    model, now = DeviceModel(limit), 1_767_225_600
    expected, charges = [], []
    for number, seconds, shift in steps:
        now += seconds
        terms = ALLOWANCES[number]
        window = now // 60 * 60 + shift
        model.use(terms)
        expected += model.charge(terms, [("me", window)], now)
        charges.append({"entry": ENTRIES[number], "windowStart": window, "now": now})
    found = javascript.ask("charges", charges=charges)
    assert found == expected
