"""The canary's chi-square: its false-alarm rate, and how soon it detects which defects."""

import numpy as np
import pytest
from scipy.special import chdtrc, chdtri, chndtr, gammaln

from deniable.estimators.canary import LEAST_EXPECTED, least_reports, report_shares, true_frequencies
from deniable.estimators.canary_fit import FALSE_ALARMS_A_YEAR, YEAR_SECONDS, alarm_threshold, chi_square
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from tests.support.estimators.simulation import generator, krr_counts

SOUND = KRR.from_epsilon(4, 2.0)
SHARES = report_shares(SOUND)
THRESHOLD = alarm_threshold(SOUND.k, 60)


def lost(bucket: int) -> np.ndarray:
    """Relative counts if 2 % of a bucket are lost."""
    return SHARES * np.where(np.arange(SOUND.k) == bucket, 0.98, 1.0)


#: Relative counts, reports per window, windows within which 99.9 % are detected (docs/canaries.md).
DEFECTS = {
    "2 % of the commonest lost": (lost(0), 1_000_000, 1),
    "2 % of the rarest lost": (lost(3), 1_000_000, 4),
    "2 % of the rarest lost, fewer reports": (lost(3), 500_000, 28),
    "epsilon 10 % too high": (report_shares(KRR.from_epsilon(4, 2.2)), 100_000, 1),
    "epsilon 10 % too low": (report_shares(KRR.from_epsilon(4, 1.8)), 100_000, 1),
    "two values change places": (SHARES[[0, 1, 3, 2]], 100_000, 1),
    "the rarest counts twice": (SHARES * [1, 1, 1, 2], 100_000, 1),
}


def test_true_shares_halve_from_value_to_value() -> None:
    assert true_frequencies(3) == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert true_frequencies(16).sum() == pytest.approx(1)


@pytest.mark.parametrize("mechanism", [SOUND, LongitudinalKRR.from_epsilons(4, 4.0, 2.0)])
def test_statistic_is_0_at_expected_counts_and_close_to_pearsons(mechanism: KRR | LongitudinalKRR) -> None:
    """Computed with the channel's matrix, which the statistic does not use."""
    reports = 10**9
    expected = reports * mechanism.channel @ true_frequencies(4)
    assert reports * report_shares(mechanism) == pytest.approx(expected)
    counts = np.rint(expected).astype(np.int64)
    assert chi_square(counts, mechanism) == pytest.approx(0, abs=1e-6)
    counts += np.array([90_000, -60_000, 40_000, -70_000])
    pearson = ((counts - expected) ** 2 / expected).sum()
    assert chi_square(counts, mechanism) == pytest.approx(pearson, rel=1e-3)
    counts[0] = 0
    assert np.isfinite(chi_square(counts, mechanism))


def test_least_reports_fill_every_bucket() -> None:
    reports = least_reports(SOUND)
    assert (reports - 1) * SHARES.min() < LEAST_EXPECTED <= reports * SHARES.min()


@pytest.mark.parametrize("window_seconds", [2, 60, 86_400])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_false_alarm_rate_is_as_stated(epsilon: float, window_seconds: int) -> None:
    """Exact: the probabilities of all counts at the smallest number of reports for three values.

    Pearson's quadratic form has up to 3 times as many false alarms and fails this test.
    """
    mechanism, threshold = KRR.from_epsilon(3, epsilon), alarm_threshold(3, window_seconds)
    shares, reports = report_shares(mechanism), least_reports(mechanism)
    first, second = np.indices((reports + 1, reports + 1)).reshape(2, -1)
    counts = np.stack([first, second, reports - first - second], axis=1)[first + second <= reports]
    chances = np.exp(gammaln(reports + 1) - gammaln(counts + 1).sum(axis=1) + counts @ np.log(shares))
    ratio = np.maximum(counts, 1) / (reports * shares)  # a count of 0 contributes 0
    statistics = 2 * (counts * np.log(ratio)).sum(axis=1)
    for place in range(0, len(counts), len(counts) // 50):
        assert chi_square(counts[place], mechanism) == pytest.approx(statistics[place], abs=1e-6)
    a_year = chances[statistics > threshold].sum() * YEAR_SECONDS / window_seconds
    assert a_year == pytest.approx(FALSE_ALARMS_A_YEAR, rel=0.2)


def exceedances(windows: int, *, drawn: bool) -> int:
    """Number of windows beyond the 5 % quantile; true values are drawn, or always as expected."""
    rng, reports, seen = generator(5), 10_000, 0
    truth = true_frequencies(SOUND.k)
    for _ in range(windows):
        values = rng.multinomial(reports, truth) if drawn else np.rint(reports * truth).astype(np.int64)
        seen += chi_square(krr_counts(rng, values, SOUND), SOUND) > chdtri(SOUND.k - 1, 0.05)
    return seen


@pytest.mark.slow
def test_sampling_of_values_is_part_of_the_noise() -> None:
    """The rate is 0.05; the interval fails by chance once in 10^6, and always if values are not drawn."""
    from scipy.stats import binom  # here, since to import it takes half a second

    low, high = binom.interval(1 - 1e-6, 3000, 0.05)
    assert low <= exceedances(3000, drawn=True) <= high
    assert exceedances(3000, drawn=False) < low


@pytest.mark.parametrize("defect", DEFECTS)
def test_detection_rate_of_defects_is_as_stated(defect: str) -> None:
    """The probability of a miss follows the non-central chi-square; one simulated run agrees."""
    relative, sent, windows = DEFECTS[defect]
    reports, shares = round(sent * relative.sum()), relative / relative.sum()
    distance = reports * ((shares - SHARES) ** 2 / SHARES).sum()
    assert chndtr(THRESHOLD, SOUND.k - 1, distance) ** windows <= 1e-3
    runs = generator(7).multinomial(reports, shares, size=windows)
    assert any(chi_square(counts, SOUND) > THRESHOLD for counts in runs)


def test_threshold_accounts_for_all_windows_of_a_year() -> None:
    assert chdtrc(3, alarm_threshold(4, 3600)) * YEAR_SECONDS / 3600 == pytest.approx(FALSE_ALARMS_A_YEAR)
    assert alarm_threshold(4, 60) > alarm_threshold(4, 3600)
