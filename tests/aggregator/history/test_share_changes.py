"""The monitor's alarms: the same in any order and after a restart, of the newest epochs."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from deniable.aggregator.estimation.window_estimate import estimate, record_of
from deniable.aggregator.history import rollup, share_changes
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.share_changes import EPOCH_WINDOWS, ChangeMonitor, period_needed
from deniable.aggregator.history.share_sequences import sequence_at
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.history.window_shares import (
    WindowShares,
    shares_of_counts,
    shares_of_record,
)
from deniable.aggregator.records.estimate import NumberMean, decode_estimate, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.number import unbiased_mean
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE

MECHANISM = KRR.from_epsilon(4, 2.0)
WATCHED = replace(FRUIT, mechanism=MECHANISM)
AIR = Collection("air", SquareWave.from_epsilon(1000.0, 1100.0, 20, 2.0), window_seconds=10)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_no_change_no_alarm() -> None:
    """One in 1e7 years of windows of 10 s: 100 windows take 3e-5."""
    assert monitor_of(windows(FIRST, FIRST + 100, FIRST + 1000)).update() == []


@pytest.mark.slow
def test_rate_of_the_collection_is_that_of_its_monitor() -> None:
    """At 1,000 false alarms a year, evidence of 10^-4 of that for 0.1 is enough, which comes earlier."""
    slightly = np.array([0.485, 0.315, 0.1, 0.1])
    some = [window(each, SHARES if each < FIRST + 60 else slightly) for each in range(FIRST, FIRST + 120)]
    often = ChangeMonitor(replace(WATCHED, change_alarms_a_year=1000.0))
    asked = ChangeMonitor(WATCHED, 1000.0)
    for each in some:
        often.add(each)
        asked.add(each)
    found = often.update()
    assert found == asked.update()
    assert found[0].found < monitor_of(some).update()[0].found


@pytest.mark.all
def test_alarms_do_not_depend_on_order_pauses_or_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = 60
    monkeypatch.setattr(share_changes, "EPOCH_WINDOWS", epoch)
    some = windows(FIRST - 144, FIRST + 40, FIRST - 20)
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
    restarted = [each for each in some if each.start // 10 >= FIRST - 2 * epoch]
    assert monitor_of(restarted).update() == expected


@pytest.mark.nightly
def test_alarm_of_the_epoch_before_is_kept_and_older_ones_go() -> None:
    monitor = ChangeMonitor(WATCHED)
    counted = []
    for end in (480, EPOCH_WINDOWS + 1, 2 * EPOCH_WINDOWS, 2 * EPOCH_WINDOWS + 1):
        for number in range(end - 480, end):
            monitor.add(window(FIRST + number, SHARES if number < 450 else LATER))
        counted.append(len(monitor.update()))
    assert counted == [2, 2, 2, 0]


@pytest.mark.slow
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
    read = shares_of_record(WATCHED, decode_estimate(encode_estimate(record)))
    expected = window(FIRST)
    assert read is not None
    assert read[:2] == expected[:2]
    np.testing.assert_array_equal(read.unbiased, expected.unbiased)
    np.testing.assert_array_equal(read.std_error, expected.std_error)
    provisional = record_of(WATCHED, FIRST * 10, counts, estimate(WATCHED, counts), final=False)
    assert shares_of_record(WATCHED, provisional) is None


@pytest.mark.parametrize("listed", [("apple", "fig"), ("apple", "kiwi", "fig"), ("apple", "fig", "plum")])
def test_record_under_another_list_has_no_shares(listed: tuple[str, ...]) -> None:
    """Candidates may change under the same fingerprint: what they had would be taken for that of others."""
    counts = counts_at(FIRST)
    record = record_of(WATCHED, FIRST * 10, counts, estimate(WATCHED, counts), final=True)
    assert shares_of_record(replace(WATCHED, values=listed), record) is None


def test_few_reports_have_no_shares() -> None:
    few = WindowCounts(np.array([[1, 1, 1, 1]]), np.array([4]), 1, 0)
    assert shares_of_counts(WATCHED, 0, few) is None


@pytest.mark.slow
def test_change_of_a_mean_is_told_in_units_of_the_number() -> None:
    """Also of one that begins far from 0, and as well from records of the topic as from counts."""
    wave = AIR.mechanism
    assert isinstance(wave, SquareWave)
    rng = np.random.default_rng(2)
    low, high = np.array([0.2] * 5 + [0.0] * 15), np.array([0.0] * 2 + [0.2] * 5 + [0.0] * 13)
    monitors = ChangeMonitor(AIR), ChangeMonitor(AIR)
    for number in range(FIRST, FIRST + 20):
        counts = rng.multinomial(5000, wave.channel @ (low if number < FIRST + 14 else high))
        window = WindowCounts(counts[None], np.array([5000]), 5, 0)
        record = record_of(AIR, number * 10, window, estimate(AIR, window), final=True)
        shares = (
            shares_of_counts(AIR, number * 10, window),
            shares_of_record(AIR, decode_estimate(encode_estimate(record))),
        )
        for monitor, each in zip(monitors, shares, strict=True):
            assert each is not None
            monitor.add(each)
    [change] = monitors[0].update()
    assert monitors[1].update() == [change]
    assert (change.value, change.since) == ("mean", (FIRST + 14) * 10)
    assert change.before == pytest.approx(1012.5, abs=1)
    assert change.low < 10 < change.high < 13
    without = msgspec.structs.replace(record, mean=NumberMean(1012.0, 1.0, 1010.0, 1014.0))
    assert shares_of_record(AIR, without) is None


def test_reports_of_one_cell_say_nothing_of_a_mean() -> None:
    counts = np.zeros(AIR.width, np.int64)
    counts[3] = 1000
    found = shares_of_counts(AIR, 0, WindowCounts(counts[None], np.array([1000]), 1, 0))
    assert found is not None
    assert np.isinf(found.std_error).all()


@pytest.mark.slow
def test_a_single_odd_window_raises_one_alarm_and_the_newest_figure_shows_the_return() -> None:
    """After it the usual share is no change: the value begins again with it."""
    odd = np.array([0.3, 0.3, 0.3, 0.1])
    some = [window(each, odd if each == FIRST + 30 else SHARES) for each in range(FIRST, FIRST + 90)]
    monitor = monitor_of(some)
    changes = monitor.update()
    assert {each.since for each in changes} == {10 * (FIRST + 30)}
    assert len(changes) == len({each.value for each in changes})
    [kiwi] = [each for each in changes if each.value == WATCHED.labels()[2]]
    assert (kiwi.before, kiwi.after) == pytest.approx((0.1, 0.3), abs=0.03)
    assert not kiwi.partial
    assert monitor.newest()[kiwi.value] == pytest.approx(0.1, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("change", [FIRST + 60, FIRST + EPOCH_WINDOWS - 1])
def test_change_in_the_middle_of_a_window_is_stated_with_its_whole_size(change: int) -> None:
    """0.3, half of it in the window of the alarm, which may be the last of an epoch.

    The intervals of four values hold with 95 % each; 5 standard errors, in which they are wrong by chance
    with less than 1e-5, are 0.04.
    """
    far = np.array([0.2, 0.6, 0.1, 0.1])
    shares = {change: (SHARES + far) / 2}
    some = [
        window(each, shares.get(each, SHARES if each < change else far))
        for each in range(change - 60, change + 4)
    ]
    part = {each.value: each for each in monitor_of(some[:61], None).update()}
    whole = {each.value: each for each in monitor_of(some, None).update()}
    assert part.keys() == whole.keys() == {"apple", "fig"}
    for value, size in (("apple", -0.3), ("fig", 0.3)):
        first, stated = part[value], whole[value]
        assert first.partial
        assert not stated.partial
        assert (stated.since, stated.found) == (first.since, first.found) == (10 * change, 10 * change + 10)
        assert abs(first.change) < 0.2
        assert stated.change == pytest.approx(size, abs=0.04)
        assert stated.low < stated.change < stated.high


def test_newest_figures_are_those_of_the_last_window_where_they_are_known() -> None:
    """Windows come in any order; a share whose error is not known is left out, and a mean is in its units."""
    assert ChangeMonitor(WATCHED).newest() == {}
    last = window(FIRST + 2)
    monitor = monitor_of([last, window(FIRST + 1)])
    assert monitor.newest() == dict(zip(WATCHED.labels(), last.unbiased.tolist(), strict=True))
    error = last.std_error.copy()
    error[0] = np.inf
    monitor.add(last._replace(std_error=error))
    assert list(monitor.newest()) == list(WATCHED.labels()[1:])
    number = ChangeMonitor(AIR)
    number.add(WindowShares(0, 100, np.array([0.25]), np.array([0.01])))
    assert number.newest() == {"mean": 1025.0}


def test_max_step_of_a_mean_is_what_one_report_changes() -> None:
    counts = np.full(AIR.width, 10, np.int64)
    low, high = counts.copy(), counts.copy()
    low[0] += 1
    high[-1] += 1
    means = [unbiased_mean(each, AIR.mechanism)[0] / 100 for each in (low, high)]  # type: ignore[arg-type]
    assert (means[1] - means[0]) * low.sum() == pytest.approx(AIR.mechanism.max_step)


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert [each.mechanism.repeats_noise for each in (FRUIT, memoized, PLACE)] == [False, True, True]


@pytest.mark.parametrize(
    "mechanism",
    [PrefixTree.from_epsilon((2, 3), 4.0, 40), LocalHash.from_epsilon(1.0, 40)],
    ids=["tree", "hash"],
)
def test_sequence_holds_although_every_window_errs_alike(mechanism: PrefixTree | LocalHash) -> None:
    """Clients of a tree return with their level, and texts collide in the same hash functions.

    The same error in each of 100 windows: were it taken for a new one each time, the sequence would be
    narrower than it after 100 windows, and exclude the truth.
    """
    texts = Collection("text", mechanism, candidates=("aaa", "bbb"))
    error = np.array([0.02, 0.02])
    windows = [WindowShares(60 * t, 1000, np.array([0.3, 0.1]) + 1.5 * error, error) for t in range(100)]
    sequence = sequence_at(texts, windows)
    assert sequence.repeated_noise
    assert sequence.low[0] <= 0.3
    assert sequence.low[1] <= 0.1
