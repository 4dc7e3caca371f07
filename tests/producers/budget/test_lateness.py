"""What is refused for its time alone: what the aggregator will turn away, with room for clocks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.budget import lateness
from producers.budget.lateness import CLOCK_SECONDS, untimely
from producers.wire import EARLY_SECONDS

LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0), window_seconds=60, grace_seconds=30)
NOW = 1_800_000_000


def test_window_is_refused_beyond_its_limits_and_the_room_for_clocks():
    """60 s of window and 30 s of grace, 300 s to its start, and 300 s more each."""
    windows = np.array([-391, -390, -60, 0, 600, 601]) + NOW
    too_early, too_late = untimely(LATENCY, windows, NOW)
    assert too_late.tolist() == [True, False, False, False, False, False]
    assert too_early.tolist() == [False, False, False, False, False, True]
    assert untimely(LATENCY, windows, NOW + 0.5).too_late.tolist() == [True, True] + [False] * 4


@given(st.integers(-2000, 2000), st.integers(-CLOCK_SECONDS, CLOCK_SECONDS))
def test_reports_acceptable_to_the_aggregator_are_never_refused(start, clocks_differ):
    window, appended = NOW + start, NOW + clocks_differ
    takes = window <= appended + EARLY_SECONDS and appended <= LATENCY.closes_at(window)
    refused = any(each[0] for each in untimely(LATENCY, np.array([window]), NOW))
    assert not (takes and refused)


def test_the_rule_is_that_of_the_aggregator():
    assert lateness.EARLY_SECONDS == EARLY_SECONDS
