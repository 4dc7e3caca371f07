"""`record` of a whole producer with a fake Kafka: what is sent, refused, dropped and counted."""

import time
from collections import Counter
from dataclasses import replace
from enum import StrEnum

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.recording.recorder import Recorder
from tests.support.brokers.log_lines import logged
from tests.support.producers.questions import CARRIER, LATENCY
from tests.support.producers.recording.outcomes import reports, sent

CANARY = "canary-7391"
EIGHT = tuple("abcdefgh")


class Carrier(StrEnum):
    """A text with a class of its own."""

    AMERICAN = "AA"


COLLECTIONS = [
    Collection("listed", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True),
    Collection("sized", KRR.from_epsilon(1000, 1.0)),
    Collection("again", LongitudinalKRR.from_epsilons(4, 2.5, 1.5), memoize=True),
    Collection("bloom", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True),
    Collection("one_hot", HotRappor.from_probabilities(8, 1, 0.25, 0.25, 0.75), values=EIGHT),
    Collection("two_hot", HotRappor.from_probabilities(8, 2, 0.25, 0.25, 0.75), values=EIGHT),
]
ALL = tuple(
    Allowance(replace(each, grace_seconds=10**10), None, reports_per_window=1000) for each in COLLECTIONS
)
TEXTS = ["AA", "?", "", "\ud800", "Zürich\0", Carrier.AMERICAN, np.str_("B6"), "x" * 10_000]
INTEGERS = [0, 999, -1, 10**30, -(10**30), np.int8(3), np.uint64(2**64 - 1)]
SETS = [{"a"}, frozenset(), ["a", "b"], ("\ud800",), {"a", "b", "c", np.str_("?")}]
VALUES = {
    "listed": TEXTS,
    "sized": INTEGERS,
    "again": INTEGERS,
    "bloom": TEXTS,
    "one_hot": TEXTS,
    "two_hot": SETS,
}


def test_every_mechanism_records_with_and_without_clients(make, kafka):
    """Mixed in one buffer each; every odd value is reported, too."""
    target, expected = make(*ALL), Counter()
    for number in range(3):
        for name, values in VALUES.items():
            for value in values:
                for client in (None, "ann", np.str_("ben"), "\ud800"):
                    assert target.record(name, value, client, at=60 * number) is None
                    expected[name, 60 * number] += 1
    target.flush()
    named = {each.collection.fingerprint: each.collection.name for each in ALL}
    assert {(named[key], window): count for (key, window), count in sent(kafka).items()} == expected
    counters = target.counters()
    assert counters.stored == counters.acknowledged
    assert sum(counters.stored.values()) == sum(expected.values())
    assert (counters.dropped, counters.refused) == ({}, {})
    unknown = target.unknown()
    assert unknown["sized"] == 3 * 4 * 4  # -1, the huge ones and 2**64 - 1
    assert unknown["listed"] == 3 * 4 * 5


@pytest.mark.slow
def test_recorded_and_reported_values_are_counted_alike(make, kafka):
    """The same unknown values, by the same rule."""
    first, second = make(*ALL), make(*ALL)
    for name, values in VALUES.items():
        for value in values:
            first.record(name, value, "ann", at=60)
            second.report(name, [value], ["ann"], at=60)
    first.flush()
    second.flush()
    assert first.unknown() == second.unknown()
    assert first.counters().stored == second.counters().stored


@pytest.mark.parametrize("at", [90, 119.99, np.int64(90), np.float32(90)])
def test_event_is_in_the_window_of_its_time(make, kafka, at):
    target = make()
    target.record("latency", 5, None, at)
    target.flush()
    assert [window for _, window in sent(kafka)] == [60]


def test_events_default_to_the_present_time(make, kafka):
    before, target = time.time() // 60 * 60, make()
    target.record("carrier", "AA")
    target.flush()
    ((_, window),) = sent(kafka)
    assert before <= window <= time.time()


def test_what_cannot_be_reported_is_dropped_and_counted(make, kafka):
    target = make()
    for at in (float("nan"), -1, 10**400, np.float64("inf"), 253402300800):
        target.record("latency", 5, "ann", at)
    target.record("latency", 5, "")
    target.record("latency", 5, "ann", 60)
    with pytest.raises(DeliveryError, match="6 reports"):
        target.flush()
    assert target.counters().dropped == {"latency": 6}
    assert reports(kafka) == target.counters().stored["latency"] == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nobody", CANARY), ValueError),
        ((None, CANARY), ValueError),
        (("carrier", b"7391"), TypeError),
        (("carrier", [CANARY]), TypeError),
        (("latency", {CANARY: 1}), TypeError),
        (("latency", [7391]), TypeError),
        (("destination", 7391j), TypeError),
        (("carrier", CANARY, 7391.5), TypeError),
        (("carrier", CANARY, True), TypeError),
        (("carrier", CANARY, [CANARY]), TypeError),
        (("carrier", CANARY, None, CANARY), TypeError),
        (("carrier", CANARY, None, [7391]), TypeError),
        (("carrier", CANARY, None, True), TypeError),
    ],
)
def test_wrong_types_raise_at_once_and_leave_nothing(make, kafka, arguments, error):
    target = make()
    with pytest.raises(error) as caught:
        target.record(*arguments)
    assert CANARY not in str(caught.value)
    assert "7391" not in str(caught.value)
    target.flush()
    assert kafka.sent == []
    assert target.counters().dropped == {}


def test_flush_sends_everything_recorded_before(make, kafka):
    target = make()
    for number in range(1, 30):
        for _ in range(number):
            target.record("latency", number, None, 60)
        target.flush()
        assert reports(kafka) == number * (number + 1) // 2


def test_closing_sends_what_was_recorded_and_drops_the_rest(make, kafka, caplog):
    target = make()
    for number in range(1000):
        target.record("latency", number, None, 60)
    target.close()
    target.close()
    assert reports(kafka) == 1000
    for _ in range(3):
        target.record("latency", 5, None, 60)
        target.record("carrier", "AA", None, 60)
    assert target.counters().dropped == {"latency": 3, "carrier": 3}
    assert len([each for each in logged(caplog) if each.name == Recorder.__module__]) == 1
    with pytest.raises(TypeError):
        target.record("latency", [CANARY])
    assert reports(kafka) == 1000


def test_wrong_budget_drops_without_an_error(make, kafka, caplog):
    target = make(Allowance(LATENCY, Budget(0.5, 1e-6, 86_400)))
    for _ in range(3):
        target.record("latency", 1)
    with pytest.raises(DeliveryError, match="3 reports"):
        target.flush()
    assert len([each for each in logged(caplog) if each.name == Recorder.__module__]) == 1


def test_budgets_hold_through_record_and_report_together(make, kafka):
    budget = Budget(epsilon=3.0, delta=1e-6, period_seconds=10**9)
    target = make(Allowance(CARRIER, budget, reports_per_window=2))
    now = int(time.time())
    for client in ("ann", "ben", "ann", "ann"):
        target.record("carrier", "AA", client, now)
    target.flush()
    assert target.report("carrier", ["AA", "AA"], ["ann", "ben"], at=now) == Receipt(stored=1, refused=1)
    assert target.report("carrier", "AA", "ann", at=now + 60).stored == 1
    for client in ("ann", "ben", "ben"):
        target.record("carrier", "AA", client, now + 60)
    target.flush()
    counters = target.counters()
    assert counters.stored == {"carrier": 6}
    assert counters.refused == {("carrier", "over_window"): 2, ("carrier", "over_budget"): 2}
    assert reports(kafka) == 6


def test_untimely_events_are_refused_uncharged(make, kafka):
    """As through `report`: beyond the clock tolerance; with clients, every late event."""
    target = make(Allowance(CARRIER, None))
    now = LATENCY.window_start(time.time())
    for client in (None, "ann"):
        for at in (now - 86_400, now - 300, now, now + 300, now + 86_400):
            target.record("carrier", "AA", client, at)
    target.flush()
    counters = target.counters()
    assert counters.stored == {"carrier": 5}
    assert counters.refused == {("carrier", "too_early"): 2, ("carrier", "too_late"): 3}


def test_next_producer_knows_recorded_spending(make):
    allowance = Allowance(LATENCY, Budget(1.5, 1e-6, 86_400 * 365))
    first = make(allowance)
    first.record("latency", 1, "ann")
    first.close()
    second = make(allowance)
    second.record("latency", 1, "ann")
    second.flush()
    assert second.counters().refused == {("latency", "over_budget"): 1}
