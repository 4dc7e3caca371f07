"""The monitor's alarms: the same in any order and after a restart, of the newest epochs."""

from dataclasses import replace

import numpy as np
import pytest

from aggregator.estimation.window_estimate import estimate, record_of
from aggregator.history import rollup
from aggregator.history.periods import Period
from aggregator.history.share_changes import EPOCH_WINDOWS, ChangeMonitor, period_needed
from aggregator.history.share_sequences import sequence_at
from aggregator.history.window_reader import Joined
from aggregator.history.window_shares import (
    WindowShares,
    most_step,
    repeats_noise,
    shares_of_counts,
    shares_of_record,
)
from aggregator.records.estimate import decode_estimate, encode_estimate
from aggregator.records.window_counts import WindowCounts
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE

MECHANISM = KRR.from_epsilon(4, 2.0)
WATCHED = replace(FRUIT, mechanism=MECHANISM)
SHARES = np.array([0.5, 0.3, 0.1, 0.1])
LATER = np.array([0.45, 0.35, 0.1, 0.1])
REPORTS = 10_000
FIRST = 1_000 * EPOCH_WINDOWS


def counts_at(number: int, shares: np.ndarray = SHARES) -> WindowCounts:
    """Counts of a window: the same for the same number."""
    rng = np.random.default_rng(number)
    counts = rng.multinomial(REPORTS, MECHANISM.q + MECHANISM.contrast * shares)
    return WindowCounts(counts[None], np.array([REPORTS]), 3, 0)


def window(number: int, shares: np.ndarray = SHARES) -> WindowShares:
    found = shares_of_counts(WATCHED, number * WATCHED.window_seconds, counts_at(number, shares))
    assert found is not None
    return found


def windows(first: int, last: int, change: int) -> list[WindowShares]:
    return [window(each, SHARES if each < change else LATER) for each in range(first, last)]


def monitor_of(some: list[WindowShares], epochs: int | None = 3) -> ChangeMonitor:
    made = ChangeMonitor(WATCHED, epochs=epochs)
    for each in some:
        made.add(each)
    return made


def test_change_is_told_with_value_time_and_size() -> None:
    some = windows(FIRST, FIRST + 120, FIRST + 60)
    changes = monitor_of(some).update()
    assert {each.value for each in changes} == {"apple", "fig"}
    for each in changes:
        size = 0.05 if each.value == "fig" else -0.05
        assert each.low < size < each.high
        assert each.change == each.after - each.before
        assert abs(each.since - (FIRST + 60) * 10) <= 50
        assert 0 < each.found - (FIRST + 60) * 10 <= 200


def test_no_change_no_alarm() -> None:
    """One in 1e7 years of windows of 10 s: 300 windows take 1e-4."""
    assert monitor_of(windows(FIRST, FIRST + 300, FIRST + 1000)).update() == []


def test_alarms_do_not_depend_on_order_pauses_or_restarts() -> None:
    some = windows(FIRST - 700, FIRST + 40, FIRST - 20)
    expected = monitor_of(some).update()
    assert len(expected) == 2
    rng = np.random.default_rng(1)
    shuffled = [some[place] for place in rng.permutation(len(some))]
    assert monitor_of(shuffled).update() == expected
    stepwise = ChangeMonitor(WATCHED)
    for each in some:
        stepwise.add(each)
        found = stepwise.update()
    assert found == expected
    restarted = [each for each in some if each.start // 10 >= FIRST - 2 * EPOCH_WINDOWS]
    assert monitor_of(restarted).update() == expected


def test_alarm_of_the_epoch_before_is_kept_and_older_ones_go() -> None:
    monitor = ChangeMonitor(WATCHED)
    counted = []
    for end in (480, EPOCH_WINDOWS + 1, 2 * EPOCH_WINDOWS, 2 * EPOCH_WINDOWS + 1):
        for number in range(end - 480, end):
            monitor.add(window(FIRST + number, SHARES if number < 450 else LATER))
        counted.append(len(monitor.update()))
    assert counted == [2, 2, 2, 0]


def test_revised_window_is_run_again() -> None:
    some = windows(FIRST, FIRST + 80, FIRST + 1000)
    monitor = monitor_of(some)
    assert monitor.update() == []
    far = np.array([0.05, 0.05, 0.45, 0.45])
    monitor.add(window(FIRST + 40, far))
    assert {each.found for each in monitor.update()} >= {(FIRST + 41) * 10}


def test_period_needed_is_that_of_two_epochs() -> None:
    seconds = 10 * EPOCH_WINDOWS
    assert period_needed(WATCHED, 1000 * seconds + 7) == 999 * seconds
    assert period_needed(WATCHED, 5) == 0


def test_record_and_counts_have_the_same_shares() -> None:
    """So a worker may read earlier windows from one topic and later ones from the other."""
    counts = counts_at(FIRST)
    record = record_of(WATCHED, FIRST * 10, counts, estimate(WATCHED, counts), final=True)
    read = shares_of_record(decode_estimate(encode_estimate(record)))
    expected = window(FIRST)
    assert read is not None
    assert read[:2] == expected[:2]
    np.testing.assert_array_equal(read.unbiased, expected.unbiased)
    np.testing.assert_array_equal(read.std_error, expected.std_error)
    provisional = record_of(WATCHED, FIRST * 10, counts, estimate(WATCHED, counts), final=False)
    assert shares_of_record(provisional) is None


def test_few_reports_and_numbers_have_no_shares() -> None:
    few = WindowCounts(np.array([[1, 1, 1, 1]]), np.array([4]), 1, 0)
    assert shares_of_counts(WATCHED, 0, few) is None
    number = Collection("air", SquareWave.from_epsilon(0.0, 10.0, 10, 2.0))
    with pytest.raises(ValueError, match="steps of a number cannot be watched, got air"):
        most_step(number)


def test_sequence_is_of_all_reports_so_far() -> None:
    some = windows(FIRST, FIRST + 30, FIRST + 10)
    shown = sequence_at(WATCHED, some)
    assert (shown.windows, shown.reports, shown.repeated_noise) == (30, 30 * REPORTS, False)
    assert (shown.since, shown.until) == (FIRST * 10, FIRST * 10 + 300)
    truth = (SHARES + 2 * LATER) / 3
    for place in range(3):
        assert shown.share[place] == pytest.approx(truth[place], abs=0.01)
        assert (
            shown.low_all[place]
            <= shown.low[place]
            < truth[place]
            < shown.high[place]
            <= shown.high_all[place]
        )


@pytest.mark.parametrize("is_memoized", [False, True])
def test_sequence_of_a_roll_up_is_that_of_its_windows(is_memoized: bool) -> None:
    """The roll-up knows only the variance of all windows together, so ends differ by 1 % of a width."""
    mechanism = LongitudinalKRR.from_epsilons(4, 3.0, 2.0) if is_memoized else MECHANISM
    made = replace(FRUIT, mechanism=mechanism, memoize=is_memoized)
    some = {number: counts_at(number) for number in range(FIRST, FIRST + 30)}
    total = sum(some.values(), WindowCounts(np.zeros((1, 4), np.int64), np.zeros(1, np.int64), 0, 0))
    reports = {number * 10: REPORTS for number in some}
    joined = Joined(total, reports, [], {}, 0)
    period = Period(FIRST * 10, (FIRST + 30) * 10)
    record = rollup.record_of(
        made, rollup.coverage_of(made, period, joined), joined, rollup.roll_up(made, joined)
    )
    shares = [shares_of_counts(made, number * 10, each) for number, each in some.items()]
    expected = sequence_at(made, [each for each in shares if each])
    assert record.sequence is not None
    found = record.sequence
    assert (found.windows, found.since, found.until, found.repeated_noise) == (
        expected.windows, expected.since, expected.until, is_memoized,
    )  # fmt: skip
    for name in ("share", "low", "high", "low_all", "high_all"):
        width = expected.high_all[0] - expected.low_all[0]
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=width / 100)


def test_returning_clients_repeat_noise() -> None:
    memoized = replace(FRUIT, mechanism=LongitudinalKRR.from_epsilons(4, 3.0, 2.0), memoize=True)
    assert [repeats_noise(each) for each in (FRUIT, memoized, PLACE)] == [False, True, True]
