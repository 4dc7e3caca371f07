"""A background thread starts once, is joined in time, and reports its death."""

import _thread
import sys
import threading

import pytest

from deniable.producers.concurrency.background_thread import Background
from tests.support.messages import PinMessages


def test_thread_and_its_follow_up_run_once():
    done = []
    thread = Background("testing", lambda: done.append("work"), lambda: done.append("afterwards"))
    assert not thread.is_begun
    assert thread.join(0)
    for _ in range(3):
        thread.start()
    assert thread.is_begun
    assert thread.join(10)
    assert done == ["work", "afterwards"]
    assert thread.death is None


def test_join_respects_its_timeout():
    going_on = threading.Event()
    thread = Background("testing", going_on.wait, lambda: None)
    thread.start()
    assert not thread.join(0.02)
    going_on.set()
    assert thread.join(10)


def test_unstartable_thread_is_reported_and_retried(
    monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    """Otherwise the next caller would wait for a thread that was never started."""

    def fail(*_):
        raise RuntimeError("can't start new thread")

    done = []
    thread = Background("testing", lambda: done.append("work"), lambda: done.append("afterwards"))
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", fail)
        pin_messages({"the thread cannot be started": thread.start, "nor the next time": thread.start})
    assert not thread.is_begun
    assert thread.join(0)
    thread.start()
    assert thread.join(10)
    assert done == ["work", "afterwards"]


@pytest.mark.parametrize("fails_afterwards", [False, True])
def test_death_is_reported_without_its_message(
    monkeypatch: pytest.MonkeyPatch, fails_afterwards: bool, pin_messages: PinMessages
) -> None:
    seen, traces = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda given: traces.append(given.exc_value))

    def work():
        raise KeyError("canary")

    def afterwards():
        seen.append(thread.death)
        if fails_afterwards:
            raise OSError

    thread = Background("testing", work, afterwards)
    thread.start()
    assert thread.join(10)
    assert seen == [thread.death]
    pin_messages({"the thread died": lambda: thread.death})
    while not traces:
        pass
    (error,) = traces
    assert "canary" in repr((error, error.__context__))


def test_start_within_a_start_relies_on_no_other(monkeypatch):
    """A signal handler starts the thread in the middle of a start that never continues."""
    done, start = [], _thread.start_new_thread
    thread = Background("testing", lambda: done.append("work"), lambda: done.append("afterwards"))

    def interrupted(*given):
        with monkeypatch.context() as patch:
            patch.setattr(_thread, "start_new_thread", start)
            thread.start()
            assert thread.join(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(_thread, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    thread.start()
    assert done == ["work", "afterwards"]


def test_only_one_of_several_started_threads_works():
    done, going_on = [], threading.Event()
    thread = Background("testing", lambda: done.append(going_on.wait(10)), lambda: done.append("afterwards"))
    callers = [threading.Thread(target=thread._run) for _ in range(5)]
    for each in callers:
        each.start()
    going_on.set()
    for each in callers:
        each.join()
    assert done == [True, "afterwards"]
