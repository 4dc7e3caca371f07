"""The queue keeps its order, is bounded in bytes, and blocks no longer than its timeout."""

import threading
import time

import numpy as np
import pytest

from producers.errors import ClosedError
from producers.metrics.counters import Receipt
from producers.pipeline.submission_queue import (
    QUEUE_BYTES,
    FlushRequest,
    PendingReceipt,
    Submission,
    SubmissionQueue,
)


def submission(size):
    """A submission of `size` bytes."""
    none = np.zeros(0, np.int64)
    return Submission(
        "latency", none, none.astype(np.uint16), np.zeros((size, 1), np.uint8), None, PendingReceipt(0)
    )


def test_items_come_in_their_order():
    intake = SubmissionQueue()
    items = [submission(1), FlushRequest(), submission(2)]
    assert all(intake.put(item, 0) for item in items)
    assert intake.take(0) == items
    assert intake.take(0) == []


def test_the_queue_is_bounded_in_bytes():
    intake = SubmissionQueue()
    assert intake.put(submission(QUEUE_BYTES - 5), 0)
    assert intake.put(submission(5), 0)
    started = time.monotonic()
    assert not intake.put(submission(1), 0.05)
    assert 0.05 <= time.monotonic() - started < 5
    intake.take(0)
    assert intake.put(submission(QUEUE_BYTES + 1), 0)  # an empty queue accepts an item of any size


def test_freed_room_releases_waiting_callers():
    intake = SubmissionQueue()
    intake.put(submission(QUEUE_BYTES), 0)
    timer = threading.Timer(0.02, intake.take, (0,))
    timer.start()
    assert intake.put(submission(1), 10)
    timer.join()


def test_taking_waits_for_an_item_or_to_be_woken():
    intake = SubmissionQueue()
    for act in (lambda: intake.put(FlushRequest(), 0), intake.wake):
        timer = threading.Timer(0.02, act)
        started = time.monotonic()
        timer.start()
        intake.take(10)
        assert time.monotonic() - started < 5
        timer.join()
    assert intake.take(0.01) == []


def test_closed_queue_still_returns_its_items():
    intake = SubmissionQueue()
    intake.put(submission(QUEUE_BYTES), 0)
    threading.Timer(0.02, intake.close).start()
    with pytest.raises(ClosedError, match=r"^the producer is closed$"):
        intake.put(submission(1), 10)
    assert len(intake.take(0)) == 1


def test_submission_after_the_end_is_refused(monkeypatch):
    """Also between the check for closing and the last `take`, whose items are accepted."""
    intake = SubmissionQueue()
    intake.put(submission(1), 0)
    assert len(intake.end()) == 1
    with pytest.raises(ClosedError):
        intake.put(submission(1), 0)
    intake = SubmissionQueue()
    monkeypatch.setattr(intake._wake_up, "notify", intake.end)
    assert intake.put(submission(1), 0)
    intake = SubmissionQueue()
    intake._is_over = True
    with pytest.raises(ClosedError):
        intake.put(submission(1), 0)
    assert intake.take(0) == []


def test_selected_reports_share_their_ticket():
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
    assert some.done is given.ticket.done


def test_a_ticket_is_pending_until_it_is_settled():
    ticket = PendingReceipt(5)
    assert ticket.receipt == Receipt(pending=5)
    assert not ticket.done.is_open
    ticket.settle(Receipt(stored=4, refused=1))
    assert ticket.receipt == Receipt(stored=4, refused=1)
    assert ticket.done.is_open
