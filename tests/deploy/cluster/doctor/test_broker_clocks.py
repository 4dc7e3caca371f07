"""Brokers' clocks are compared by what is certain: a slow answer proves no difference."""

from typing import cast

import pytest

from deniable.cluster.permissions.roles import Role
from deniable.config.file import Configuration
from deniable.deploy.cluster.doctor.case import Append, Case, StepAnswer
from deniable.deploy.cluster.doctor.clock_skew import clock_skew

ASKED = 1_000_000.0


def judged(*appends: tuple[float, float]) -> StepAnswer:
    """By each broker's append time and our time of its answer, both seconds after the question."""
    case = Case(cast(Configuration, None), Role.AGGREGATOR, lambda: ASKED)
    case.appends = [
        Append(number, ASKED + appended, ASKED, ASKED + answered)
        for number, (appended, answered) in enumerate(appends, 1)
    ]
    return clock_skew(case, 2.0)


@pytest.mark.parametrize("ahead", [0.0, 40.0, -40.0])
@pytest.mark.parametrize("appends", [[(0.0, 0.1)], [(0.0, 0.1), (0.9, 0.1)], [(0.0, 0.1), (2.0, 2.0)]])
def test_brokers_that_may_agree_are_not_reported(appends: list[tuple[float, float]], ahead: float) -> None:
    assert judged(*((appended + ahead, answered) for appended, answered in appends)).findings == []


def test_brokers_that_surely_differ_are_a_warning() -> None:
    (finding,) = judged((0.0, 0.1), (5.2, 0.2), (-3.0, 0.1)).findings
    assert finding.is_warning
    assert finding.what == "the clock of broker 2 is 8.0 s or more ahead of that of broker 3"


def test_this_clock_is_compared_as_well() -> None:
    differ, ours = judged((-90.0, 0.0), (0.0, 0.0)).findings[::-1]
    assert (differ.is_warning, ours.is_warning) == (True, False)
    assert ours.what == "this clock is 90 s ahead of Kafka's"
