"""The queue keeps its order, is bounded in bytes, and blocks no longer than its timeout."""

import threading
import time

import numpy as np
import pytest

from deniable.producers.errors import ClosedError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing.submission import FlushRequest, PendingReceipt, Submission
from deniable.producers.pipeline.queueing.submission_queue import QUEUE_BYTES, SubmissionQueue


def submission(size):
    """A submission of `size` bytes."""
    none = np.zeros(0, np.int64)
    return Submission(
        "latency", none, none.astype(np.uint16), np.zeros((size, 1), np.uint8), None, PendingReceipt(0)
    )


def test_items_keep_their_order():
    queue = SubmissionQueue()
    items = [submission(1), FlushRequest(), submission(2)]
    assert all(queue.put(item, 0) for item in items)
    assert queue.take(0) == items
    assert queue.take(0) == []


def test_queue_is_bounded_in_bytes():
    queue = SubmissionQueue()
    assert queue.put(submission(QUEUE_BYTES - 5), 0)
    assert queue.put(submission(5), 0)
    started = time.monotonic()
    assert not queue.put(submission(1), 0.05)
    assert time.monotonic() - started >= 0.05
    queue.take(0)
    assert queue.put(submission(QUEUE_BYTES + 1), 0)  # an empty queue accepts an item of any size


def test_freed_room_releases_waiting_callers():
    queue = SubmissionQueue()
    queue.put(submission(QUEUE_BYTES), 0)
    timer = threading.Timer(0.02, queue.take, (0,))
    timer.start()
    assert queue.put(submission(1), 10)
    timer.join()


def test_take_waits_for_an_item_or_wake():
    """Without them the test reaches its time limit."""
    queue = SubmissionQueue()
    for act in (lambda: queue.put(FlushRequest(), 0), queue.wake):
        timer = threading.Timer(0.02, act)
        timer.start()
        queue.take(600)
        timer.join()
    assert queue.take(0.01) == []


def test_closed_queue_still_returns_its_items():
    queue = SubmissionQueue()
    queue.put(submission(QUEUE_BYTES), 0)
    threading.Timer(0.02, queue.close).start()
    with pytest.raises(ClosedError):
        queue.put(submission(1), 10)
    assert len(queue.take(0)) == 1


def test_submission_after_the_end_is_refused(monkeypatch):
    """Also between the check for closing and the last `take`, whose items are accepted."""
    queue = SubmissionQueue()
    queue.put(submission(1), 0)
    assert len(queue.end()) == 1
    with pytest.raises(ClosedError):
        queue.put(submission(1), 0)
    queue = SubmissionQueue()
    monkeypatch.setattr(queue._wake_up, "notify", queue.end)
    assert queue.put(submission(1), 0)
    queue = SubmissionQueue()
    queue._is_over = True
    with pytest.raises(ClosedError):
        queue.put(submission(1), 0)
    assert queue.take(0) == []


def test_selected_reports_share_their_pending_receipt():
    numbers = np.arange(3)
    given = Submission(
        "latency",
        numbers,
        numbers.astype(np.uint16),
        numbers.astype(np.uint8)[:, None],
        None,
        PendingReceipt(3),
    )
    assert given.only(np.ones(3, bool)) is given
    some = given.only(np.array([True, False, True]))
    assert (some.windows.tolist(), some.cohorts.tolist(), some.rows.tolist()) == ([0, 2], [0, 2], [[0], [2]])
    assert some.clients is None
    assert some.done is given.pending_receipt.done


def test_receipt_is_pending_until_settled():
    pending = PendingReceipt(5)
    assert pending.receipt == Receipt(pending=5)
    assert not pending.done.is_open
    pending.settle(Receipt(stored=4, refused=1))
    assert pending.receipt == Receipt(stored=4, refused=1)
    assert pending.done.is_open
