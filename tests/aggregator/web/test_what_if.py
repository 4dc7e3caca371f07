"""The what-if equals the planner's figures for the same collection at other epsilons."""

import math
from dataclasses import replace

import pytest

from deniable.aggregator.web.what_if import STEPS, plan
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.mechanism import at_epsilon, epsilon_range
from deniable.estimators.planning import expected_std_error, smallest_detectable
from tests.support.aggregator.builders import FRUIT, PLACE

REPORTS = 50_000
LONG = Collection(name="long", mechanism=LongitudinalKRR.from_epsilons(1000, 2.0, 1.0))
NO_CANDIDATES = replace(PLACE, candidates=())


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LONG, NO_CANDIDATES], ids=lambda each: each.name)
def test_figures_match_the_planner(collection: Collection) -> None:
    planned = plan(collection, REPORTS)
    values = max(1, collection.entries)
    assert len(planned.others.epsilon) == STEPS + 1
    assert planned.others.epsilon == sorted(planned.others.epsilon)
    for place in (0, STEPS // 3, STEPS):
        least, _ = epsilon_range(collection.mechanism)  # the exact epsilon may be slightly below it
        mechanism = at_epsilon(collection.mechanism, max(least, planned.others.epsilon[place]))
        error = expected_std_error(mechanism, REPORTS, candidates=values)
        found = smallest_detectable(mechanism, REPORTS, values)
        assert planned.others.std_error[place] == pytest.approx(error, rel=1e-5)
        assert (planned.others.detectable[place] or math.inf) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LONG], ids=lambda each: each.name)
def test_own_epsilon_is_included(collection: Collection) -> None:
    planned = plan(collection, REPORTS)
    assert planned.now.epsilon == [collection.mechanism.epsilon]
    assert planned.now.std_error == [
        expected_std_error(collection.mechanism, REPORTS, candidates=collection.entries)
    ]
    assert min(abs(epsilon / planned.now.epsilon[0] - 1) for epsilon in planned.others.epsilon) < 1e-4


def test_no_share_is_detectable_below_the_limit() -> None:
    assert plan(LONG, 1).now.detectable == [None]


@pytest.mark.parametrize("reports", [0, 10**18 + 1])
def test_reports_out_of_range_are_refused(reports: int) -> None:
    with pytest.raises(ValueError, match="reports"):
        plan(FRUIT, reports)
