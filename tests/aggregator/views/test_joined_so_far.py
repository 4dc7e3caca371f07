"""Shares so far across changes: the figures of `rollup --former`, from estimates instead of counts."""

from dataclasses import replace
from functools import reduce
from operator import add

import msgspec
import numpy as np
import pytest
from scipy.special import chdtri

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views import joined_so_far
from deniable.aggregator.views.former_estimates import FormerDefinition, FormerEstimates
from deniable.aggregator.views.joined_so_far import SharesAcrossChanges, join_so_far
from deniable.analysis.changes.joined_history import Definition, join_history
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.aggregator.builders import FRUIT, PLACE, T0

HOUR = Period(T0, T0 + 3600)
CLOSER = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))
LONGER = replace(FRUIT, mechanism=KRR.from_epsilon(5, 1.0), values=("apple", "fig", "kiwi", "lime"))
STRICT = replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False)
LASTING = replace(FRUIT, mechanism=LongitudinalKRR.from_epsilons(4, 2.0, 1.0))
HASHED = replace(PLACE, mechanism=LocalHash.from_epsilon(2.0, 64))
SIZES = (300, 500, 400)


def windows_of(collection: Collection, first: int, seed: int = 1) -> dict[int, WindowCounts]:
    """Counts of three windows of SIZES reports in a cohort, from a window number on."""
    rng, found = np.random.default_rng(seed), {}
    for number, size in enumerate(SIZES, first):
        if isinstance(collection.mechanism, Rappor):
            counts = rng.integers(size // 4, size // 2, (collection.cohorts, collection.width))
        else:
            shares = rng.dirichlet(np.full(collection.width, 50.0))
            counts = rng.multinomial(size, shares)[None]
        sizes = np.full(collection.cohorts, size)
        found[T0 + 10 * number] = WindowCounts(counts, sizes, packs=1, rejected=0)
    return found


def summed(windows: dict[int, WindowCounts], others: dict[int, int] | None = None) -> Joined:
    """The windows as they are read from the topic `windows`."""
    total = reduce(add, windows.values())
    return Joined(total, {start: each.reports for start, each in windows.items()}, [], others or {}, 0)


def estimated(
    collection: Collection, windows: dict[int, WindowCounts], present: Collection
) -> list[FormerDefinition]:
    """The windows as they are read from the topic `estimates`."""
    reading = FormerEstimates(present, HOUR)
    for start, window in windows.items():
        result = window_estimate.estimate(collection, window)
        record = window_estimate.record_of(collection, start, window, result, final=True)
        assert reading.take(record.key, encode_estimate(record))
    return reading.definitions()


def across(
    former: Collection, present: Collection, unread: int = 0, *, is_new: bool = False
) -> SharesAcrossChanges:
    """Three windows of each; none under the present parameters where `is_new`."""
    before, after = windows_of(former, 0), windows_of(present, 3, seed=2)
    joined = summed(after, {former.fingerprint: len(before) + unread})
    result = None if is_new else roll_up(present, joined)
    return join_so_far(present, joined, result, estimated(former, before, present))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("former", "present", "tolerance"),
    [(CLOSER, FRUIT, 1e-9), (LONGER, FRUIT, 1e-9), (FRUIT, LONGER, 1e-9), (HASHED, HASHED, 0.05)],
    ids=["epsilon", "shorter list", "longer list", "local-hash"],
)
def test_shares_are_those_of_the_roll_up_with_the_former_file(
    former: Collection, present: Collection, tolerance: float
) -> None:
    """Of k-RR to the last digits: its estimates are linear. Errors differ as variances of windows do."""
    if former is present:
        former = replace(former, mechanism=LocalHash.from_epsilon(1.0, 64))
    sides = [
        Definition(each, summed(windows_of(each, 3 * number, seed=1 + number)))
        for number, each in enumerate((former, present))
    ]
    expected = join_history(sides[1], [sides[0]], HOUR)
    found = across(former, present)
    labels = [each for each in expected.values if each != "(other)"]
    assert found.values == labels
    assert found.share == pytest.approx(expected.share[: len(labels)], abs=3 * tolerance + 2e-3)
    assert found.std_error == pytest.approx(expected.std_error[: len(labels)], rel=0.02)
    assert found.parts_of_value == expected.parts_of_value[: len(labels)]
    assert (found.windows, found.reports) == (6, expected.reports)
    assert [each.change for each in found.parts] == [
        each.change.replace("only before", "only then").replace("only since", "only now")
        for each in expected.parts[:1]
    ]


def test_mean_of_former_windows_is_what_their_counts_give() -> None:
    """Without a window under the present parameters, directly after a change.

    The roll-up's sequence also allows for what one report adds: it is at most 0.012 wider on each side.
    """
    counts = summed(windows_of(CLOSER, 0))
    result = roll_up(CLOSER, counts)
    assert result is not None
    assert result.independent.unbiased is not None
    found = across(CLOSER, FRUIT, is_new=True)
    assert found.share == pytest.approx(result.independent.unbiased[:3].tolist(), abs=1e-12)
    assert found.std_error == pytest.approx(result.independent.std_error[:3].tolist(), rel=0.01)
    coverage = coverage_of(CLOSER, HOUR, counts)
    sequence = record_of(CLOSER, coverage, counts, result).sequence
    assert sequence is not None
    for name in ("low", "high", "low_all", "high_all"):
        assert getattr(found, name) == pytest.approx(getattr(sequence, name), abs=0.012)
    assert (found.since, found.until, found.windows) == (T0, T0 + 30, 3)


def test_intervals_hold_at_every_look_and_are_narrower_than_without_the_former_part() -> None:
    found = across(CLOSER, FRUIT)
    alone = record_of(
        FRUIT,
        coverage_of(FRUIT, HOUR, summed(windows_of(FRUIT, 3, seed=2))),
        summed(windows_of(FRUIT, 3, seed=2)),
        roll_up(FRUIT, summed(windows_of(FRUIT, 3, seed=2))),
    ).sequence
    assert alone is not None
    assert (found.unread, found.repeated_noise) == (0, False)
    for place in range(3):
        assert found.high[place] - found.low[place] < alone.high[place] - alone.low[place]
        assert found.low_all[place] <= found.low[place]
        assert found.high[place] - found.low[place] > 2 * 1.96 * (found.std_error[place] or 0)


def test_several_changes_are_joined_whatever_the_order_of_reading() -> None:
    """The sequence begins with the first window of all, which is the smallest."""
    early, late = windows_of(CLOSER, 0), windows_of(LONGER, 10, seed=3)
    joined = summed(windows_of(FRUIT, 20), {CLOSER.fingerprint: 3, LONGER.fingerprint: 3})
    parts = [*estimated(CLOSER, early, FRUIT), *estimated(LONGER, late, FRUIT)]
    one, other = (join_so_far(FRUIT, joined, roll_up(FRUIT, joined), each) for each in (parts, parts[::-1]))
    assert (one.windows, one.parts_of_value, one.parts) == (9, [3, 3, 3, 1], other.parts[::-1])
    assert one.share == pytest.approx(other.share)
    assert one.low == pytest.approx(other.low)
    only_late = join_so_far(FRUIT, joined, roll_up(FRUIT, joined), parts[1:])
    assert one.high[0] - one.low[0] < only_late.high[0] - only_late.low[0]


@pytest.mark.slow
@pytest.mark.parametrize("lasting", ["former", "present"])
def test_noise_that_clients_may_keep_is_not_averaged_out(lasting: str) -> None:
    """The mean of three windows has an interval that is as wide as one of a single window."""
    former, present = (LASTING, FRUIT) if lasting == "former" else (FRUIT, LASTING)
    found = across(former, present)
    assert found.repeated_noise
    for place in range(3):
        assert (found.shared_std_error[place] or 0) > (found.std_error[place] or 1)
    single = estimated(LASTING, windows_of(LASTING, 0), FRUIT)[0].windows[T0].error[0]
    three = across(LASTING, FRUIT, is_new=True)
    assert (three.shared_std_error[0] or 0) == pytest.approx(single, rel=0.15)
    assert three.high[0] - three.low[0] > 2 * 1.96 * 0.85 * single


def test_misfit_of_rappor_is_alike_in_all_windows_and_parts() -> None:
    former = replace(PLACE, mechanism=Rappor.from_probabilities(16, 2, 3, 0.5, 0.35, 0.65))
    found = across(former, PLACE)
    assert found.repeated_noise
    assert found.parts[0].not_joined == ""
    for shared, error in zip(found.shared_std_error, found.std_error, strict=True):
        assert shared is None or error is None or shared >= error


def test_lists_without_other_are_not_joined_and_say_why() -> None:
    longer = replace(STRICT, mechanism=KRR.from_epsilon(4, 2.0), values=("apple", "fig", "kiwi", "lime"))
    found = across(longer, STRICT, unread=2)
    assert (found.values, found.share, found.unread) == ([], [], 2)
    [part] = found.parts
    assert part.change == "only then: lime"
    assert part.not_joined == "the lists differ, and without `other` a share is one of listed values alone"
    assert (part.start, part.end, part.windows, part.reports) == (T0, T0 + 30, 3, sum(SIZES))


def test_cut_lists_are_not_joined() -> None:
    windows = windows_of(CLOSER, 0)
    [former] = estimated(CLOSER, windows, FRUIT)
    cut = former._replace(windows={}, unfit=3, reason="records leave out values")
    joined = summed(windows_of(FRUIT, 3), {CLOSER.fingerprint: 3})
    found = join_so_far(FRUIT, joined, roll_up(FRUIT, joined), [cut])
    assert ([each.not_joined for each in found.parts], found.unread) == (["records leave out values"], 3)


def test_values_of_which_nothing_is_known_are_left_out() -> None:
    [former] = estimated(CLOSER, windows_of(CLOSER, 0), FRUIT)
    unknown = {
        start: each._replace(error=np.array([np.inf, each.error[1], each.error[2]]))
        for start, each in former.windows.items()
    }
    joined = summed(windows_of(FRUIT, 3), {CLOSER.fingerprint: 3})
    found = join_so_far(FRUIT, joined, None, [former._replace(windows=unknown)])
    assert found.values == ["fig", "kiwi"]
    nothing = {start: each._replace(error=np.full(3, np.inf)) for start, each in former.windows.items()}
    assert join_so_far(FRUIT, joined, None, [former._replace(windows=nothing)]).values == []
    both = join_so_far(FRUIT, joined, roll_up(FRUIT, joined), [former._replace(windows=nothing)])
    assert both.parts_of_value == [1, 1, 1]


def test_answer_has_the_largest_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_so_far, "VALUES", 2)
    found = across(CLOSER, FRUIT)
    assert (len(found.values), found.omitted) == (2, 1)
    assert {len(getattr(found, name)) for name in ("share", "low_all", "p_value", "differs")} == {2}
    assert b'"from":' in msgspec.json.encode(found)


def test_joined_shares_err_as_much_as_they_say() -> None:
    """500 values alike, over a change of epsilon: the mean square of their errors, in standard errors, is 1.

    It is outside of the bounds of chi-square with a probability of 1e-6. Errors that are stated too small or
    too large by 30 %, as without the weights of windows, are outside with more than 99.9 %.
    """
    values, rng = tuple(f"v{place}" for place in range(500)), np.random.default_rng(5)
    sides = [
        replace(FRUIT, mechanism=KRR.from_epsilon(501, epsilon), values=values) for epsilon in (3.0, 4.0)
    ]
    truth = np.array([*[1 / 600] * 500, 1 / 6])
    both = []
    for number, each in enumerate(sides):
        assert isinstance(each.mechanism, KRR)
        channel = each.mechanism.q + each.mechanism.contrast * truth
        found = {}
        for window, size in enumerate((5000, 20_000, 10_000), 3 * number):
            counts = rng.multinomial(size, channel)[None]
            found[T0 + 10 * window] = WindowCounts(counts, np.array([size]), packs=1, rejected=0)
        both.append(found)
    joined = summed(both[1], {sides[0].fingerprint: 3})
    found_shares = join_so_far(
        sides[1], joined, roll_up(sides[1], joined), estimated(sides[0], both[0], sides[1])
    )
    errors = (np.array(found_shares.share) - 1 / 600) / np.array(found_shares.std_error, np.float64)
    low, high = chdtri(500, [1 - 5e-7, 5e-7])
    assert low < (errors**2).sum() < high
    assert sum(found_shares.differs) <= 5  # each of a true mean: at a rate of 5 % there is hardly any
