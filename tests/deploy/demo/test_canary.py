"""The demo's canary: chance passes at the rate it states, the defect that it states does not."""

import numpy as np
import pytest
from scipy.special import chdtrc, chndtr

from deniable.deploy.demo.canary import judge_canary
from deniable.deploy.demo.stream import CANARY_REPORTS
from deniable.deploy.demo.verdict import FALSE_ALARM_RATE
from deniable.estimators.canary import report_shares
from deniable.estimators.mechanisms.krr import KRR

MECHANISM = KRR.from_epsilon(4, 2.0)
HONEST = np.rint(report_shares(MECHANISM) * CANARY_REPORTS).astype(np.int64)
SWAPPED = HONEST[[1, 0, 2, 3]]


def test_sent_distribution_passes() -> None:
    verdict = judge_canary("canary", [HONEST] * 6, MECHANISM)
    assert verdict.faults() == []
    assert verdict.sentence() == "canary: chi-square of 6 final windows, largest 0.0, threshold 34.4"


@pytest.mark.parametrize("place", range(6))
def test_one_window_that_is_off_fails_and_is_named(place: int) -> None:
    windows = [HONEST] * 6
    windows[place] = SWAPPED
    (message,) = judge_canary("canary", windows, MECHANISM).faults()
    assert message.startswith("canary: chi-square of 6 final windows, largest ")
    assert message.endswith(", threshold 34.4: reports do not have the distribution that was sent")


def test_a_canary_that_never_flew_fails() -> None:
    verdict = judge_canary("canary", [], MECHANISM)
    assert verdict.faults() == ["canary: no window became final"]
    assert verdict.sentence().startswith("canary: chi-square of 0 final windows, largest 0.0")


@pytest.mark.parametrize("windows", [1, 20])
def test_all_windows_together_alarm_falsely_at_the_stated_rate(windows: int) -> None:
    threshold = judge_canary("canary", [HONEST] * windows, MECHANISM).threshold
    chance = -np.expm1(windows * np.log1p(-chdtrc(3, threshold)))
    assert 0.999 < chance / FALSE_ALARM_RATE < 1 + 1e-9


@pytest.mark.parametrize("epsilon", [1.8, 2.2])
def test_epsilon_10_percent_off_is_detected_within_20_windows(epsilon: float) -> None:
    """By the statistic's limit, chi-square with that of the expected counts as its noncentrality."""
    expected = np.rint(report_shares(KRR.from_epsilon(4, epsilon)) * CANARY_REPORTS).astype(np.int64)
    verdict = judge_canary("canary", [HONEST] * 19 + [expected], MECHANISM)
    assert chndtr(verdict.threshold, 3, verdict.largest) < 0.001
