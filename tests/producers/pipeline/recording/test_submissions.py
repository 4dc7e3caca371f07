"""Values become submissions: singles that come together are one, batches are split in parts."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.concurrency.clock import Clock
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.recording import submissions
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.protocol.secrets.secret import Secret
from tests.support.messages import PinMessages
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY
from tests.support.producers.sources import RepeatableWords

NOW = 1_700_000_000
SETS = Collection("sets", HotRappor.from_probabilities(8, 2, 0.25, 0.25, 0.75), values=tuple("abcdefgh"))
COSTLY = Allowance(
    Collection("costly", KRR.from_epsilon(4, 1.0)), Budget(epsilon=0.5, delta=1e-6, period_seconds=86_400)
)
ALL = {each.name: Allowance(each, None) for each in (CARRIER, LATENCY, DESTINATION, SETS)} | {
    "costly": COSTLY
}


class TextSubclass(str):
    """Text that is not exactly of type `str`."""


@pytest.fixture
def randomization():
    clock = Clock(unix=lambda: float(NOW))
    return Randomization(ALL, Secret(bytes(32)), RepeatableWords(1), clock)


@pytest.mark.parametrize(
    ("collection", "value", "client", "at"),
    [
        ("carrier", "AA", None, None),
        ("carrier", "unknown", "ann", 0),
        ("latency", -(2**70), "ann", 253402300799),
        ("destination", "\ud800", None, 59.9),
        ("destination", "", "ann", np.float64(60)),
    ],
)
def test_usual_value_is_kept_unrandomized(randomization, collection, value, client, at):
    single = randomization.single(collection, value, client, at)
    assert (single.collection, single.value, single.client) == (collection, value, client)
    assert single.time == (NOW if at is None else at)
    assert single.pending_receipt.receipt == Receipt(pending=1)
    assert sum(randomization.unknown().values()) == 0


@pytest.mark.parametrize(
    ("collection", "value", "client", "at"),
    [
        ("nobody", "AA", None, None),
        ("carrier", 5, None, None),
        ("carrier", ["AA"], None, None),
        ("carrier", TextSubclass("AA"), None, None),
        ("latency", True, None, None),
        ("latency", np.int64(5), None, None),
        ("sets", {"a"}, None, None),
        ("carrier", "AA", "", None),
        ("carrier", "AA", ["ann"], None),
        ("carrier", "AA", TextSubclass("ann"), None),
        ("carrier", "AA", None, float("nan")),
        ("carrier", "AA", None, -0.1),
        ("carrier", "AA", None, 253402300800),
        ("carrier", "AA", None, 10**400),
        ("carrier", "AA", None, True),
        ("carrier", "AA", None, [5]),
        ("carrier", "AA", None, "5"),
    ],
)
def test_anything_unusual_is_left_to_the_checks_of_batches(randomization, collection, value, client, at):
    assert randomization.single(collection, value, client, at) is None


def test_single_above_the_budget_is_refused_before_it_is_queued(randomization):
    with pytest.raises(ValueError, match="costly"):
        randomization.single("costly", 3, None, None)
    assert randomization.single("costly", 3, "ann", None) is not None


def test_messages(randomization: Randomization, pin_messages: PinMessages) -> None:
    pin_messages({"the collection is unknown": lambda: randomization.submissions("canary-7391", "AA", None)})


def test_singles_of_one_collection_are_one_submission(randomization):
    """Those with a client and those without are apart, as one submission has keys or none."""
    singles = [
        randomization.single(*each)
        for each in [
            ("carrier", "AA", None, 0),
            ("latency", 5, "ann", 61.5),
            ("carrier", "B6", "ann", 120),
            ("carrier", "?", None, 60.0),
            ("latency", 5000, "ben", 0),
        ]
    ]
    joined = randomization.joined(singles)
    assert [(each.collection, each.has_clients, each.windows.tolist()) for each in joined] == [
        ("carrier", False, [0, 60]),
        ("latency", True, [60, 0]),
        ("carrier", True, [120]),
    ]
    assert [each.calls.tolist() for each in joined] == [[0, 1], [0, 1], [0]]
    assert joined[1].clients.shape == (2, 16)
    assert randomization.unknown() == {
        "carrier": 1,
        "latency": 1,
        "destination": 0,
        "sets": 0,
        "costly": 0,
    }
    joined[0].pending_receipt.settle(Receipt(stored=1, refused=1), np.array([1]))
    outcomes = [each.pending_receipt.receipt for each in singles]
    assert outcomes == [
        Receipt(refused=1),
        Receipt(pending=1),
        Receipt(pending=1),
        Receipt(stored=1),
        Receipt(pending=1),
    ]


def test_no_singles_are_no_submissions(randomization):
    assert randomization.joined([]) == []


def test_singles_and_batches_get_the_same_reports():
    """With the same words."""
    values, clients = ["JFK", "LGA", "JFK"], ["ann", "ben", "ann"]
    made = []
    for _ in range(2):
        made.append(Randomization(ALL, Secret(bytes(32)), RepeatableWords(7), Clock()))
    singles = [
        made[0].single("destination", value, client, 5) for value, client in zip(values, clients, strict=True)
    ]
    (one,) = made[0].joined(singles)
    (other,) = made[1].submissions("destination", values, clients, 5)
    for name in ("windows", "cohorts", "rows", "clients"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_long_batch_is_randomized_in_parts_unless_progress_is_stored(randomization, monkeypatch):
    monkeypatch.setattr(submissions, "parts", lambda _, count: [slice(0, 2), slice(2, count)])
    whole = randomization.submissions("latency", [1, 2, 3], None, progress=("in.csv", None))
    assert [len(each.rows) for each in whole] == [3]
    parts = list(randomization.submissions("latency", [1, 2, 3], None))
    assert [each.pending_receipt.reports for each in parts] == [2, 1]
    assert len({id(each.pending_receipt) for each in parts}) == 2


def test_batch_is_checked_before_its_first_part_is_randomized(randomization):
    with pytest.raises(TypeError, match="at"):
        randomization.submissions("latency", [1], None, True)
    with pytest.raises(ValueError, match="costly"):
        randomization.submissions("costly", [1], None)
    assert sum(randomization.unknown().values()) == 0


def test_true_value_client_and_time_are_not_shown(randomization):
    single = randomization.single("carrier", "canary-7391", "client-7391", 7391)
    assert "7391" not in repr(single)
    assert "7391" not in repr(replace(single, time=7391.5))
