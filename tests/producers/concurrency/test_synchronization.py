"""Wake-ups and latches: waiting threads wake, and callers never block."""

import threading
import time

import pytest

from deniable.producers.concurrency.synchronization import Latch, TimeBudget, WakeUp


def test_several_notifications_count_once():
    wake_up = WakeUp()
    assert not wake_up.wait(0)
    wake_up.notify()
    wake_up.notify()
    assert wake_up.wait(0)
    assert not wake_up.wait(0.01)


def test_notify_wakes_the_waiting_thread():
    wake_up = WakeUp()
    timer = threading.Timer(0.02, wake_up.notify)
    timer.start()
    assert wake_up.wait(120)
    timer.join()


@pytest.mark.parametrize("seconds", [-1.0, 0.0, float("-inf"), float("nan")])
def test_zero_seconds_do_not_wait(seconds):
    assert not WakeUp().wait(seconds)


def test_latch_releases_present_and_later_waiters():
    latch, through = Latch(), []

    def wait():
        through.append(latch.wait(float("inf")))

    threads = [threading.Thread(target=wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert not latch.wait(0.02)
    assert through == []
    latch.open()
    latch.open()
    for thread in threads:
        thread.join(10)
    assert through == [True] * 5
    assert latch.wait(0)
    assert latch.is_open


def test_time_budget_counts_only_time_inside():
    budget = TimeBudget(100)
    with budget:
        time.sleep(0.1)
    left = budget.left
    assert 50 < left <= 99.9
    time.sleep(0.05)
    assert budget.left == left
    short = TimeBudget(0.01)
    with short:
        time.sleep(0.02)
    assert short.left == 0
