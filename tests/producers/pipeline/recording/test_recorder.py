"""The recorder collects events, queues them together, and loses none; the pipeline is a list here."""

import _thread
import logging
import sys
import threading
import time

import pytest

from deniable.producers.concurrency.clock import Clock
from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.metrics.counters import Receipt, ReportTotals
from deniable.producers.pipeline.recording import recorder as recording
from deniable.producers.pipeline.recording.event_buffer import FIELDS, EventBuffer
from deniable.producers.pipeline.recording.recorder import Recorder
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.protocol.secrets.secret import Secret
from tests.producers.pipeline.recording.test_submissions import ALL
from tests.support.brokers.log_lines import logged, messages
from tests.support.messages import PinMessages
from tests.support.processes import wait_until
from tests.support.producers.sources import RepeatableWords

NOW = 1_700_000_000


class KeptPipeline:
    """Keeps submissions instead of storing them."""

    def __init__(self, totals):
        self.kept = []
        self.why_dropped = []
        self.full = set()
        self.error = None
        self.on_put = lambda: None
        self._totals = totals

    def start(self):
        """Nothing to start."""

    def put(self, item, seconds):
        self.on_put()
        if self.error is not None:
            raise self.error
        deadline = time.monotonic() + seconds
        while item.collection in self.full:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)
        self.kept.append(item)
        item.pending_receipt.settle(Receipt(stored=len(item.rows)))
        return True

    def drop(self, submission, why):
        self.why_dropped.append(why)
        self._totals.drop(submission.collection, len(submission.rows))

    def counts(self):
        """Reports of each collection."""
        counts = {}
        for each in tuple(self.kept):
            counts[each.collection] = counts.get(each.collection, 0) + len(each.rows)
        return counts


@pytest.fixture
def totals():
    return ReportTotals(ALL)


@pytest.fixture
def pipeline(totals):
    return KeptPipeline(totals)


@pytest.fixture
def recorder(pipeline, totals):
    clock = Clock(unix=lambda: float(NOW))
    made = Recorder(Randomization(ALL, Secret(bytes(32)), RepeatableWords(1), clock), pipeline, totals, clock)
    yield made
    pipeline.full.clear()
    made._is_ending = True
    made._wake_up.notify()
    made._thread.join(60)


def record(recorder, count, collection="latency", client=None):
    for number in range(count):
        recorder.record(collection, number if collection == "latency" else "AA", client, 60)


def dropped(totals):
    return dict(totals.counters().dropped)


def test_events_that_come_together_are_queued_together(recorder, pipeline, monkeypatch):
    """All that came since the first, after the interval."""
    monkeypatch.setattr(recording, "INTERVAL_SECONDS", 0.3)
    record(recorder, 500)
    record(recorder, 300, client="ann")
    assert pipeline.kept == []
    assert recorder.drain(60)
    assert sorted((each.has_clients, len(each.rows)) for each in pipeline.kept) == [(False, 500), (True, 300)]


@pytest.mark.slow
def test_event_is_queued_without_another_call(recorder, pipeline):
    """Also if the thread sleeps, at any moment of falling asleep: none waits until it wakes by itself."""
    began = time.monotonic()
    for number in range(1, 60):
        record(recorder, 1)
        assert wait_until(lambda: pipeline.counts() == {"latency": number}, 30)  # noqa: B023 (called here)
        time.sleep(number % 7 / 1000)
    assert time.monotonic() - began < 30


def test_sleeping_thread_is_woken_once(recorder, monkeypatch):
    """Later events of the interval cost their callers no system call."""
    monkeypatch.setattr(recording, "INTERVAL_SECONDS", 5.0)
    record(recorder, 1)
    assert wait_until(lambda: recorder._wake_above > 0)
    woken = []
    monkeypatch.setattr(recorder._wake_up, "notify", lambda: woken.append(1))
    record(recorder, 1000)
    assert woken == []
    monkeypatch.undo()
    assert recorder.drain(60)


def test_many_events_are_queued_sooner(recorder, pipeline, monkeypatch):
    monkeypatch.setattr(recording, "INTERVAL_SECONDS", 3600.0)
    monkeypatch.setattr(recording, "MANY_EVENTS", 100)
    record(recorder, 1)
    assert wait_until(lambda: recorder._wake_above > 0)
    assert pipeline.kept == []
    record(recorder, 100)
    assert wait_until(lambda: sum(pipeline.counts().values()) > 99, 30)


def test_drain_waits_for_room(recorder, pipeline):
    pipeline.full.add("latency")
    record(recorder, 5)
    assert not recorder.drain(0.1)
    pipeline.full.clear()
    assert recorder.drain(60)
    assert pipeline.counts() == {"latency": 5}


def test_drain_of_an_unused_recorder_starts_no_thread(recorder):
    assert recorder.drain(0)
    assert recorder.save(0)
    assert recorder.close(0)
    assert not recorder.is_used
    assert not recorder._thread.is_begun


def test_collection_without_room_does_not_hold_up_others(recorder, pipeline):
    pipeline.full.add("latency")
    for _ in range(5):
        record(recorder, 3)
        record(recorder, 2, "carrier")
        time.sleep(0.03)
    assert wait_until(lambda: pipeline.counts() == {"carrier": 10}, 30)
    pipeline.full.clear()
    assert recorder.drain(60)
    assert pipeline.counts() == {"carrier": 10, "latency": 15}


def test_busy_collection_does_not_hold_up_flush(recorder, pipeline):
    """Events come as fast as they are queued, without an end."""
    pipeline.on_put = lambda: record(recorder, 1)
    record(recorder, 1)
    record(recorder, 1, "carrier")
    assert recorder.drain(30)
    assert pipeline.counts()["carrier"] == 1
    pipeline.on_put = lambda: None


def test_save_waits_until_receipts_are_settled(recorder, pipeline, monkeypatch):
    settled = []

    def put(item, seconds):
        settled.append(item)
        return True

    monkeypatch.setattr(pipeline, "put", put)
    record(recorder, 3)
    assert recorder.drain(60)
    began = time.monotonic()
    assert not recorder.save(0.1)
    assert 0.1 <= time.monotonic() - began < 30
    settled[0].pending_receipt.settle(Receipt(stored=3))
    assert recorder.save(60)


@pytest.mark.slow
def test_full_buffer_drops_and_counts_exactly(
    recorder, pipeline, totals, monkeypatch, caplog, pin_messages: PinMessages
) -> None:
    """It says so once, though many are dropped; a later drop is mentioned after a minute."""
    monkeypatch.setattr(EventBuffer, "full", 10 * FIELDS)
    pipeline.full.add("latency")
    record(recorder, 1)
    assert wait_until(lambda: recorder._unqueued["latency"])
    record(recorder, 25)
    record(recorder, 5, "carrier")
    assert dropped(totals) == {"latency": 15}
    assert wait_until(lambda: messages(caplog), 30)
    pin_messages({"events come faster than they are stored": lambda: "\n".join(messages(caplog))})
    record(recorder, 5)
    time.sleep(0.1)
    assert len(messages(caplog)) == 1
    monkeypatch.setattr(recording, "MESSAGE_SECONDS", 0.0)
    assert wait_until(lambda: len(messages(caplog)) == 2, 30)
    assert messages(caplog)[1].startswith("20 ")
    time.sleep(0.1)
    assert len(messages(caplog)) == 2  # nothing was dropped since
    pipeline.full.clear()
    assert recorder.drain(60)
    assert pipeline.counts() == {"latency": 11, "carrier": 5}


def test_unusable_events_are_dropped_with_one_message_a_reason(
    recorder, pipeline, totals, caplog, pin_messages: PinMessages
) -> None:
    for at in (float("nan"), -0.1, 253402300800, float("inf")) * 2:
        recorder.record("latency", 5, None, at)
    recorder.record("latency", 5, "", 60)
    recorder.record("latency", 5, "ann", 60)
    assert recorder.drain(60)
    record(recorder, 1, client="")
    assert recorder.drain(60)
    assert pipeline.counts() == {"latency": 1}
    assert dropped(totals) == {"latency": 10}
    pin_messages({"no client, and times out of range": lambda: "\n".join(messages(caplog))})


def test_events_above_the_budget_are_dropped_with_one_message(
    recorder, pipeline, totals, caplog, pin_messages: PinMessages
) -> None:
    for _ in range(2):
        recorder.record("costly", 1, None, 60)
        recorder.record("costly", 1, "ann", 60)
        assert recorder.drain(60)
    assert (pipeline.counts(), dropped(totals)) == ({"costly": 2}, {"costly": 2})
    pin_messages({"events are above the budget": lambda: "\n".join(messages(caplog))})


@pytest.mark.parametrize("error", [ClosedError(), DeliveryError("the storing thread died of KeyError")])
def test_events_that_the_pipeline_refuses_are_dropped(recorder, pipeline, totals, error):
    pipeline.error = error
    record(recorder, 7)
    assert recorder.drain(60)
    assert dropped(totals) == {"latency": 7}
    assert pipeline.why_dropped == [str(error)]


def test_close_queues_what_was_recorded_and_drops_the_rest(
    recorder, pipeline, totals, caplog, pin_messages: PinMessages
) -> None:
    record(recorder, 7)
    assert recorder.close(60)
    assert recorder.close(0)
    record(recorder, 4)
    record(recorder, 1, "carrier")
    assert pipeline.counts() == {"latency": 7}
    assert dropped(totals) == {"latency": 4, "carrier": 1}
    pin_messages({"events were recorded after close": lambda: "\n".join(messages(caplog))})


def test_event_that_comes_too_late_for_the_end_is_counted(recorder, pipeline, totals, monkeypatch):
    """Its caller was interrupted after it found the recorder open."""
    record(recorder, 1)
    assert recorder.close(60)
    monkeypatch.setattr(recorder, "_is_ending", False)
    record(recorder, 3)
    assert (pipeline.counts(), dropped(totals)) == ({"latency": 1}, {"latency": 3})
    assert not recorder._holds(1)


def test_closing_takes_no_longer_than_allowed(recorder, pipeline):
    pipeline.full.add("latency")
    record(recorder, 1)
    began = time.monotonic()
    assert not recorder.close(0.1)
    assert 0.1 <= time.monotonic() - began < 30
    pipeline.full.clear()
    assert recorder._thread.join(60)
    assert pipeline.counts() == {"latency": 1}


@pytest.mark.slow
def test_threads_lose_and_double_nothing_while_one_closes(recorder, pipeline, totals):
    """Recorded = stored + dropped, exactly; the interpreter switches threads as often as it can."""
    recorded, closed, interval = [], threading.Event(), sys.getswitchinterval()

    def work():
        count, is_last = 0, False
        while not is_last:
            is_last = closed.is_set()
            for _ in range(100):
                recorder.record("latency", count, None, 60)
                count += 1
        recorded.append(count)

    threads = [threading.Thread(target=work) for _ in range(8)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        assert wait_until(lambda: pipeline.counts().get("latency", 0) > 1000)
        assert recorder.close(60)
        closed.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert pipeline.counts()["latency"] + dropped(totals)["latency"] == sum(recorded)
    assert min(pipeline.counts()["latency"], dropped(totals)["latency"]) > 100


@pytest.fixture
def unstartable(monkeypatch):
    """Let no thread be started until the returned list is cleared."""
    start, failing = _thread.start_new_thread, [True]

    def start_or_fail(*given):
        if failing:
            raise RuntimeError("can't start new thread")
        return start(*given)

    monkeypatch.setattr(_thread, "start_new_thread", start_or_fail)
    return failing


def test_events_wait_for_a_thread_that_cannot_be_started(
    recorder, pipeline, unstartable, caplog, pin_messages: PinMessages
) -> None:
    """`drain` reports it, and the next event or `drain` tries again."""
    record(recorder, 5)
    (shown,) = messages(caplog)
    pin_messages({"an event was recorded": lambda: shown, "drained": lambda: recorder.drain(60)})
    assert not recorder.save(60)
    unstartable.clear()
    assert recorder.drain(60)
    assert pipeline.counts() == {"latency": 5}


def test_close_drops_events_if_no_thread_can_be_started(recorder, totals, unstartable):
    record(recorder, 5)
    with pytest.raises(DeliveryError, match="recording thread"):
        recorder.close(60)
    record(recorder, 1)
    assert dropped(totals) == {"latency": 6}


@pytest.mark.usefixtures("one_dies")
@pytest.mark.parametrize("where", ["randomizing", "queueing"])
def test_dead_thread_is_reported_and_all_events_are_counted(
    recorder, pipeline, totals, monkeypatch, caplog, where
):
    """Those it had in its hands, those that it never took, and later ones."""

    def die(*_):
        record(recorder, 2, "carrier")
        raise KeyError("canary-7391")

    record(recorder, 1)
    assert recorder.drain(60)
    if where == "randomizing":
        monkeypatch.setattr(recorder._randomization, "submissions", die)
    else:
        monkeypatch.setattr(pipeline, "put", die)
    record(recorder, 5)
    with pytest.raises(DeliveryError) as died:
        recorder.drain(60)
    assert "canary" not in str(died.value)
    record(recorder, 3)
    with pytest.raises(DeliveryError, match=str(died.value)):
        recorder.close(60)
    assert not recorder.save(60)
    assert dropped(totals) == {"latency": 8, "carrier": 2}
    (shown,) = messages(caplog)
    assert shown.endswith(str(died.value))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nobody", 1, None, None), ValueError),
        (("latency", b"7391", None, None), TypeError),
        (("carrier", 7391j, None, None), TypeError),
        (("sets", "7391", None, None), TypeError),
        (("latency", 1, 7391.5, None), TypeError),
        (("latency", 1, None, "7391"), TypeError),
        (("latency", 1, None, True), TypeError),
    ],
)
def test_wrong_argument_raises_at_once_and_leaves_nothing(recorder, totals, caplog, arguments, error):
    with pytest.raises(error) as caught:
        recorder.record(*arguments)
    assert "7391" not in str(caught.value)
    assert not recorder.is_used
    assert (dropped(totals), messages(caplog)) == ({}, [])


def test_times_default_to_the_moment_of_the_call(recorder, pipeline):
    recorder.record("latency", 1, None, None)
    assert recorder.drain(60)
    assert pipeline.kept[0].windows.tolist() == [NOW // 60 * 60]


def same_steps(recorder, pipeline, monkeypatch, values):
    """Record values by a thread that is not running; return what can be seen of it."""
    woken = []
    monkeypatch.setattr(recorder._thread, "start", lambda: None)
    monkeypatch.setattr(recorder._wake_up, "notify", lambda: woken.append(sum(pipeline.counts().values())))
    for number, value in enumerate(values):
        recorder.record("carrier", value, None, 60 * number)
        recorder.record("destination", value, f"client-{number % 5}", 60)
        if number % 10 == 9:
            recorder._wake_above = FIELDS * 2 if recorder._wake_above == 0 else 0
            recorder._serve()
    return woken, [
        (each.collection, each.has_clients, each.windows.tolist(), each.cohorts.tolist(), each.size)
        for each in pipeline.kept
    ]


@pytest.mark.parametrize("values", [["B6"] * 50, ["?" * number for number in range(50)], ["\ud800é"] * 50])
def test_what_can_be_seen_does_not_depend_on_values(monkeypatch, values):
    """Wake-ups, and number, time, size and cohorts of submissions: all but their noisy rows."""
    seen = []
    for given in (["AA"] * 50, values):
        totals = ReportTotals(ALL)
        pipeline, clock = KeptPipeline(totals), Clock(unix=lambda: float(NOW))
        randomization = Randomization(ALL, Secret(bytes(32)), RepeatableWords(1), clock)
        seen.append(
            same_steps(Recorder(randomization, pipeline, totals, clock), pipeline, monkeypatch, given)
        )
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == 5  # one for each ten events that come while the thread may be asleep
    assert len(seen[0][1]) == 10


def test_messages_are_warnings_of_this_module(recorder, caplog):
    recorder.close(0)
    record(recorder, 1)
    (record_of,) = logged(caplog)
    assert (record_of.name, record_of.levelno) == (
        "deniable.producers.pipeline.recording.recorder",
        logging.WARNING,
    )


class RaisingHandler(logging.Handler):
    """A handler of an application that is broken."""

    def emit(self, record):
        raise RuntimeError("the disk of the log is full")


def test_broken_log_handler_fails_neither_thread_nor_caller(recorder, pipeline):
    """Each message is lost; events go on."""
    logger, handler = logging.getLogger("deniable.producers.pipeline.recording.recorder"), RaisingHandler()
    logger.addHandler(handler)
    try:
        recorder.record("latency", 1, "", None)  # the thread warns of it
        assert recorder.drain(60)
        recorder.record("latency", 1, None, None)
        assert recorder.close(60)
        recorder.record("latency", 1, None, None)  # the caller warns of it
    finally:
        logger.removeHandler(handler)
    assert pipeline.counts() == {"latency": 1}
