"""Reports refused for their time alone: those that the aggregator would reject whatever its clock shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger.acceptance import Acceptance, Rejection
from deniable.aggregator.ledger.terms import terms_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.lateness import CLOCK_SECONDS, untimely
from deniable.protocol.wire import EARLY_SECONDS, KRR_NUMBER, Pack, encode

LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0), window_seconds=60, grace_seconds=30)
NOW = 1_800_000_000
WINDOW = LATENCY.window_start(NOW)
RECORD = encode(Pack(KRR_NUMBER, 0, LATENCY.fingerprint, WINDOW, 3, 1000, bytes(16), bytes(6)))


def producer_refusal(now: float) -> str | None:
    found = untimely(LATENCY, np.array([WINDOW]), now)
    return next((reason for reason, refused in found._asdict().items() if refused[0]), None)


def ledger_refusal(append_seconds: int) -> str | None:
    append_ms = 1000 * append_seconds
    try:
        Acceptance({LATENCY.fingerprint: terms_of(LATENCY)}, 0, 1).accept(0, RECORD, append_ms, append_ms, {})
    except Rejection as rejection:
        return rejection.reason
    return None


def test_refuses_windows_beyond_the_limits_and_clock_tolerance():
    """60 s of window and 30 s of grace, 300 s to its start, and 300 s more each."""
    windows = np.array([-391, -390, -60, 0, 600, 601]) + NOW
    too_early, too_late = untimely(LATENCY, windows, NOW)
    assert too_late.tolist() == [True, False, False, False, False, False]
    assert too_early.tolist() == [False, False, False, False, False, True]
    assert untimely(LATENCY, windows, NOW + 0.5).too_late.tolist() == [True, True] + [False] * 4


@given(st.integers(-2000, 2000), st.integers(-CLOCK_SECONDS, CLOCK_SECONDS))
def test_never_refuses_reports_that_the_ledger_accepts(seconds, clocks_differ):
    now = WINDOW + seconds
    assert ledger_refusal(now + clocks_differ) is not None or producer_refusal(now) is None


@pytest.mark.parametrize(
    ("appended", "clocks_differ", "beyond", "reason"),
    [
        (WINDOW - EARLY_SECONDS, CLOCK_SECONDS, -1, "too_early"),
        (LATENCY.closes_at(WINDOW), -CLOCK_SECONDS, 1, "too_late"),
    ],
    ids=["earliest", "latest"],
)
def test_producer_and_ledger_have_the_same_limits(appended, clocks_differ, beyond, reason):
    """If the log's clock is as far off as allowed, both accept the edge and refuse one second more."""
    for append_seconds, refusal in ((appended, None), (appended + beyond, reason)):
        assert ledger_refusal(append_seconds) == refusal
        assert producer_refusal(append_seconds - clocks_differ) == refusal
