"""Events are saved when the process ends: who is watched, and who handles SIGTERM."""

import os
import signal
import threading
import weakref

import pytest

from deniable.producers.pipeline.recording import process_end
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages


class Remembering:
    """Remembers how it was saved."""

    def __init__(self):
        self.saved = []

    def save(self, seconds):
        self.saved.append(seconds)
        return True


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)


def test_opening_in_another_thread_says_what_sigterm_loses(caplog, pin_messages: PinMessages) -> None:
    in_a_thread(lambda: process_end.watch(Remembering()))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    in_a_thread(lambda: process_end.watch(Remembering()))
    (shown,) = messages(caplog)
    pin_messages({"a producer was opened in another thread": lambda: shown})


@pytest.fixture(autouse=True)
def default_handler(monkeypatch):
    """Begin with nothing watched and the default action, and restore the handler of the tests."""
    monkeypatch.setattr(process_end, "_watched", set())
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_watched_objects_are_saved_until_they_are_forgotten():
    first, second = Remembering(), Remembering()
    process_end.watch(first)
    process_end.watch(second)
    process_end._save_all()
    process_end.forget(first)
    process_end.forget(first)
    process_end._save_all()
    assert (first.saved, second.saved) == ([process_end.SAVE_SECONDS], [process_end.SAVE_SECONDS] * 2)


def test_watched_object_is_kept_alive_until_it_is_forgotten():
    one = Remembering()
    alive = weakref.ref(one)
    process_end.watch(one)
    del one
    assert alive() is not None
    process_end.forget(alive())
    assert alive() is None


def test_default_action_of_sigterm_is_replaced():
    process_end.watch(Remembering())
    assert signal.getsignal(signal.SIGTERM) is process_end._on_sigterm


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None], ids=["ignored", "own"])
def test_other_handlers_are_kept(handler):
    signal.signal(signal.SIGTERM, handler)
    process_end.watch(Remembering())
    assert signal.getsignal(signal.SIGTERM) is handler


def test_other_threads_set_no_handler():
    """They are not allowed to."""
    one = Remembering()
    thread = threading.Thread(target=process_end.watch, args=(one,))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    process_end._save_all()
    assert len(one.saved) == 1


def test_handler_saves_and_ends_the_process_by_the_signal(monkeypatch):
    one, killed = Remembering(), []
    process_end.watch(one)
    monkeypatch.setattr(os, "kill", lambda *given: killed.append((given, len(one.saved))))
    signal.raise_signal(signal.SIGTERM)
    assert killed == [((os.getpid(), signal.SIGTERM), 1)]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
