"""Receipts of calls whose reports are stored together, and values that are not yet randomized."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing.submission import (
    PendingReceipt,
    SharedReceipt,
    SingleReport,
    Submission,
)


@pytest.mark.slow
@given(st.lists(st.booleans(), max_size=20))
def test_each_call_gets_its_own_receipt(kept):
    """Whatever is refused, all receipts sum to the shared one."""
    calls = [PendingReceipt(1) for _ in kept]
    shared = SharedReceipt(calls)
    assert shared.receipt == Receipt(pending=len(kept))
    stored = np.flatnonzero(kept)
    total = Receipt(stored=len(stored), refused=len(kept) - len(stored))
    shared.settle(total, stored)
    assert [call.receipt for call in calls] == [
        Receipt(stored=int(each), refused=int(not each)) for each in kept
    ]
    assert sum((call.receipt for call in calls), Receipt()) == shared.receipt == total
    assert all(call.done.is_open for call in [*calls, shared])


@pytest.mark.slow
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=6))
def test_calls_of_several_reports_share_a_receipt(kept):
    calls = [PendingReceipt(len(each)) for each in kept]
    numbers = np.repeat(np.arange(len(kept)), [len(each) for each in kept])
    stored = numbers[np.concatenate([np.array(each) for each in kept])]
    SharedReceipt(calls).settle(Receipt(stored=len(stored), refused=len(numbers) - len(stored)), stored)
    assert [(call.receipt.stored, call.receipt.refused) for call in calls] == [
        (sum(each), len(each) - sum(each)) for each in kept
    ]


def test_drop_of_shared_reports_reaches_every_call():
    calls = [PendingReceipt(1), PendingReceipt(3)]
    shared = SharedReceipt(calls)
    assert shared.reports == 4
    shared.settle(Receipt(dropped=4, why_dropped="the outbox is full"))
    assert [call.receipt for call in calls] == [Receipt(dropped=1), Receipt(dropped=3)]
    assert {call.receipt.why_dropped for call in calls} == {"the outbox is full"}
    assert all(call.done.is_open for call in [*calls, shared])


def test_call_without_stored_reports_is_refused():
    """All were refused: their indices are an empty array."""
    calls = [PendingReceipt(1), PendingReceipt(1)]
    SharedReceipt(calls).settle(Receipt(refused=2), np.zeros(0, np.int64))
    assert [call.receipt for call in calls] == [Receipt(refused=1)] * 2


def test_index_of_another_call_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        SharedReceipt([PendingReceipt(1)]).settle(Receipt(stored=1), np.array([1]))


def test_chosen_reports_keep_their_calls():
    numbers = np.arange(3)
    rows = np.zeros((3, 1), np.uint8)
    given_all = Submission(
        "latency", numbers, numbers.astype(np.uint16), rows, None, PendingReceipt(3), calls=numbers
    )
    assert given_all.only(np.array([False, True, True])).calls.tolist() == [1, 2]


def test_size_grows_with_reports_and_clients():
    numbers = np.arange(3)
    alone = Submission(
        "latency", numbers, numbers.astype(np.uint16), np.zeros((3, 2), np.uint8), None, PendingReceipt(3)
    )
    assert (alone.size, alone.has_clients) == (3 * (8 + 2 + 2), False)


@pytest.mark.parametrize("client", [None, "ann"])
def test_single_report_hides_its_value(client):
    single = SingleReport("carrier", "canary-7391", client and f"{client}-7391", 7391.0, PendingReceipt(1))
    assert single.has_clients == (client is not None)
    assert single.size > 0
    assert single.done is single.pending_receipt.done
    assert "7391" not in repr(single)
    assert "carrier" in repr(single)
