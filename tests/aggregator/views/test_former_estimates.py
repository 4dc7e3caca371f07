"""Estimates under former parameters: which records of the topic count, and which cannot be joined."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views import former_estimates
from deniable.aggregator.views.former_estimates import FormerDefinition, FormerEstimates
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of
from tests.support.messages import PinMessages

CLOSER = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))
HOUR = Period(T0, T0 + 3600)


def former(step: int, **fields: object) -> EstimateRecord:
    """A final estimate under other parameters, so many windows after T0."""
    at = {"window_start": T0 + 10 * step, "window_end": T0 + 10 * step + 10}
    return changed(estimate_of(CLOSER), **({"final": True} | at | fields))


def reading_of(*records: EstimateRecord) -> FormerEstimates:
    reading = FormerEstimates(FRUIT, HOUR)
    for each in records:
        reading.take(each.key, encode_estimate(each))
    return reading


def only(*records: EstimateRecord) -> FormerDefinition:
    [found] = reading_of(*records).definitions()
    return found


def test_windows_of_the_period_under_other_parameters_are_kept() -> None:
    """Final ones of this name alone; the record that says parameters is the newest."""
    found = only(
        former(2),
        former(0),
        former(5, final=False),
        former(-1),
        former(360),
        changed(former(6), collection="place"),
        changed(estimate_of(), final=True),
        changed(estimate_of(PLACE), final=True),
    )
    assert [*found.windows] == [T0, T0 + 20]
    assert found.record == former(2)
    window = found.windows[T0]
    assert (window.end, window.reports, window.values) == (T0 + 10, 40, FRUIT.labels())
    assert window.share.tolist() == former(0).unbiased
    assert window.error.tolist() == former(0).std_error
    assert (found.unfit, found.reason) == (0, "")


def test_what_is_no_estimate_is_skipped() -> None:
    reading = FormerEstimates(FRUIT, HOUR)
    for key, value in ((None, b"{}"), (b"fruit/1", None), (b"fruit/1", b"{}"), (b"fruits/1", b"x")):
        assert not reading.take(key, value)
    assert reading.definitions() == []


def test_newest_revision_counts_in_any_order() -> None:
    older, newer = former(0, revision=1, reports=10), former(0, revision=2, reports=20)
    for records in ((older, newer), (newer, older)):
        assert only(*records).windows[T0].reports == 20


def test_withdrawn_window_is_gone() -> None:
    empty = {name: [] for name in ("values", "frequency", "count", "std_error", "low", "high", "significant")}
    gone = former(0, revision=9, reports=0, **empty)
    assert [*only(former(0), former(1), gone).windows] == [T0 + 10]
    assert reading_of(former(0), gone).definitions() == []


def test_estimate_in_parts_counts_once_it_is_whole() -> None:
    first = former(0, parts=2, omitted=3)
    second = former(0, part=2, parts=2, values=["x", "y", "z"], unbiased=[0.1, 0.2, 0.3])
    assert reading_of(first).definitions() == []
    assert only(first, second).windows[T0].values == (*FRUIT.labels(), "x", "y", "z")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"omitted": 2}, "records leave out the lowest values, and noise chose those that they list"),
        ({"unbiased": []}, "records have no unbiased shares"),
    ],
    ids=["omitted", "old version"],
)
def test_shares_that_noise_or_clipping_biases_are_not_used(fields: dict[str, object], reason: str) -> None:
    found = only(former(0), former(1, **fields))
    assert ([*found.windows], found.unfit, found.reason) == ([T0], 1, reason)
    assert found.record == former(0)
    assert only(former(1, **fields)).windows == {}


def test_unknown_errors_are_infinite() -> None:
    """Also of values that share bits with strings outside the list."""
    record = former(
        0, std_error=[0.1, None, 0.2], unreliable=[False, False, True], misfit_error=[0.01, 0.02, 0.03]
    )
    window = only(record).windows[T0]
    assert window.error.tolist() == [0.1, np.inf, np.inf]
    assert window.alike.tolist() == [0.01, 0.02, 0.03]


def test_collisions_are_alike_in_every_window() -> None:
    record = former(0, mechanism="local-hash", diagnostics={"collision_error": 0.02})
    assert only(record).windows[T0].alike.tolist() == [0.02] * 3


def test_shares_are_bounded_together(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision takes the place of the former one, so it adds nothing."""
    monkeypatch.setattr(former_estimates, "MOST_SHARES", 6)
    reading = reading_of(former(0), former(1), former(1, revision=5))
    third = former(2)
    pin_messages({"too many shares": lambda: reading.take(third.key, encode_estimate(third))})
