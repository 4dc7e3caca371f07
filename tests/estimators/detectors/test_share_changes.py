"""The detector of changes: its e-processes, its rate of false alarms, and what it says of a change."""

import numpy as np
import pytest

from bench.estimators.populations import zipf_shares
from estimators.detectors.share_changes import DetectedChange, ShareChangeDetector, _is_kept
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.krr import KRR

REPORTS = 10_000
Found = list[tuple[int, DetectedChange]]


def watched(
    share: np.ndarray,
    windows: int,
    between: float,
    *,
    seed: int = 1,
    epsilon: float = 1.0,
    reports: int = REPORTS,
    later: np.ndarray | None = None,
) -> Found:
    """Changes found in windows of clients drawn from a population; from the middle on from another one."""
    mechanism = KRR.from_epsilon(len(share), epsilon)
    channel, rng = Inversion.of_symmetric(mechanism), np.random.default_rng(seed)
    detector = ShareChangeDetector(len(share), between)
    found: Found = []
    for window in range(windows):
        now = share if later is None or window < windows // 2 else later
        counts = rng.multinomial(reports, channel.miss + channel.contrast * now)
        unbiased = channel.frequency(counts / reports)
        errors = channel.std_error(unbiased, reports)
        changes = detector.add(window, reports, unbiased, errors, 1 / channel.contrast)
        found += [(window, each) for each in changes]
    return found


@pytest.mark.parametrize(
    ("values", "reports", "epsilon"), [(10, 10_000, 4.0), (300, 300, 2.0)], ids=["common", "rare"]
)
def test_false_alarms_are_as_rare_as_stated(values: int, reports: int, epsilon: float) -> None:
    """3,000 windows at 1,000 between alarms: 3 are allowed, and chance exceeds 15 with less than 1e-6.

    (Poisson.) Without the sampling of clients there are hundreds of common values; without the term of
    Bernstein's inequality, dozens of rare ones, of which a window has a report or two.
    """
    share = zipf_shares(values, 1.0)
    assert len(watched(share, 3000, 1000.0, epsilon=epsilon, reports=reports)) <= 15


def test_change_is_found_with_its_time_and_size() -> None:
    """0.05 move from the first value to the last, 3 standard errors of one window, after 60 windows."""
    share = zipf_shares(6, 1.0)
    later = share + np.array([-0.05, 0, 0, 0, 0, 0.05])
    found = watched(share, 120, 1e6, later=later)
    changes = {each.value: (window, each) for window, each in found}
    assert changes.keys() == {0, 5}
    for value, size in ((0, -0.05), (5, 0.05)):
        window, change = changes[value]
        assert 60 <= window <= 75
        assert abs(change.since - 60) <= 3
        assert change.low < size < change.high
        assert change.low * change.high > 0
        assert change.before == pytest.approx(share[value], abs=0.02)
        assert change.after == pytest.approx(later[value], abs=0.05)


def test_after_an_alarm_the_new_share_is_the_usual_one() -> None:
    """Without beginning again, every window after the change would alarm."""
    share = zipf_shares(6, 1.0)
    later = share + np.array([-0.2, 0, 0, 0, 0, 0.2])
    found = watched(share, 400, 1e6, later=later)
    assert sorted(each.value for _, each in found) == [0, 5]


def test_each_factor_has_a_mean_of_at_most_1() -> None:
    """Mean of R after t windows is at most t - 1, over 4,000 runs of 12 windows of 20 rare values.

    R is bounded by its threshold here, so its mean over 80,000 has an error below 0.2.
    """
    mechanism = KRR.from_epsilon(20, 1.0)
    channel, rng, total, runs = Inversion.of_symmetric(mechanism), np.random.default_rng(3), 0.0, 4000
    for _ in range(runs):
        detector = ShareChangeDetector(20, 1e300)
        for window in range(12):
            counts = rng.multinomial(200, np.full(20, 1 / 20))
            unbiased = channel.frequency(counts / 200)
            detector.add(window, 200, unbiased, channel.std_error(unbiased, 200), 1 / channel.contrast)
        total += float(np.minimum(np.exp(detector._logs).mean(axis=1).sum(axis=0), 1000).mean())
    assert 3 < total / runs <= 11.2


def test_values_without_information_are_left_out() -> None:
    detector = ShareChangeDetector(2, 10.0)
    for window in range(30):
        share = np.array([0.5, 0.1 if window < 15 else 0.9])
        assert detector.add(window, 1000, share, np.array([0.01, np.inf]), 1.0) == []


def test_starts_thin_out_with_age() -> None:
    kept = [age for age in range(1000) if _is_kept(10_000 - age, age)]
    assert kept[:16] == list(range(16))
    assert len(kept) < 80
    assert max(kept) >= 900


def test_wide_gaps_and_different_numbers_of_reports_are_no_change() -> None:
    """Windows of 100 to 100,000 reports with gaps: no alarm at one in 1e5 windows; 1e-2 by chance at most."""
    channel, rng = Inversion.of_symmetric(KRR.from_epsilon(4, 1.0)), np.random.default_rng(7)
    detector = ShareChangeDetector(4, 1e5)
    for window in np.cumsum(rng.integers(1, 50, 1000)):
        reports = int(10 ** rng.uniform(2, 5))
        counts = rng.multinomial(reports, channel.miss + channel.contrast * np.array([0.7, 0.2, 0.1, 0]))
        unbiased = channel.frequency(counts / reports)
        errors = channel.std_error(unbiased, reports)
        assert detector.add(int(window), reports, unbiased, errors, 1 / channel.contrast) == []
