"""The what-if is what the planner says of the same collection at other epsilons."""

import math
from dataclasses import replace

import pytest

from aggregator.web.what_if import STEPS, plan
from estimators.collection import Collection
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import at_epsilon, epsilon_range
from estimators.planning import expected_std_error, smallest_detectable
from tests.support.aggregator.builders import FRUIT, PLACE

REPORTS = 50_000
LONG = Collection(name="long", mechanism=LongitudinalKRR.from_epsilons(1000, 2.0, 1.0))
NO_CANDIDATES = replace(PLACE, candidates=())


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LONG, NO_CANDIDATES], ids=lambda each: each.name)
def test_every_figure_is_the_planners(collection: Collection) -> None:
    made = plan(collection, REPORTS)
    values = max(1, collection.entries)
    assert len(made.others.epsilon) == STEPS + 1
    assert made.others.epsilon == sorted(made.others.epsilon)
    for place in (0, STEPS // 3, STEPS):
        least, _ = epsilon_range(collection.mechanism)  # the exact epsilon can lie a little below it
        mechanism = at_epsilon(collection.mechanism, max(least, made.others.epsilon[place]))
        error = expected_std_error(mechanism, REPORTS, candidates=values)
        found = smallest_detectable(mechanism, REPORTS, values)
        assert made.others.std_error[place] == pytest.approx(error, rel=1e-5)
        assert (made.others.detectable[place] or math.inf) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LONG], ids=lambda each: each.name)
def test_its_own_epsilon_is_among_them(collection: Collection) -> None:
    made = plan(collection, REPORTS)
    assert made.now.epsilon == [collection.mechanism.epsilon]
    assert made.now.std_error == [
        expected_std_error(collection.mechanism, REPORTS, candidates=collection.entries)
    ]
    assert min(abs(epsilon / made.now.epsilon[0] - 1) for epsilon in made.others.epsilon) < 1e-4


def test_no_share_is_detectable_below_the_limit() -> None:
    assert plan(LONG, 1).now.detectable == [None]


@pytest.mark.parametrize("reports", [0, 10**18 + 1])
def test_reports_out_of_range_are_refused(reports: int) -> None:
    with pytest.raises(ValueError, match=rf"^reports must be in \[1, {10**18}\], got {reports}$"):
        plan(FRUIT, reports)
