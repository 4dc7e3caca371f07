"""`report` of one value: threads share transactions, and each call gets its own exact receipt."""

import gc
import threading
import time
from collections import Counter

import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing.queue_thread import QueueThread
from deniable.producers.pipeline.queueing.submission import SingleReport
from deniable.producers.pipeline.transactions import StoreTransactions
from deniable.producers.storage.outbox import Outbox
from deniable.protocol.wire import decode
from tests.support.messages import PinMessages
from tests.support.processes import wait_until
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY

THREADS = 8


def reports(kafka):
    return sum(decode(record["value"]).reports for record in kafka.sent)


def in_threads(work):
    """Run `work(number)` in THREADS threads, and raise the first error of any."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 (it is raised below)
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def transactions(monkeypatch):
    """Count transactions with submissions, by their number of reports."""
    counted, run = [], StoreTransactions.run

    def count(self, submissions, flushes, *, ticking):
        if submissions:
            counted.append(sum(len(each.rows) for each in submissions))
        return run(self, submissions, flushes, ticking=ticking)

    monkeypatch.setattr(StoreTransactions, "run", count)
    return counted


def test_threads_share_transactions(make, kafka, monkeypatch):
    target, counted = make(), transactions(monkeypatch)

    def work(number):
        for _ in range(50):
            assert target.report("latency", number, None, 60) == Receipt(stored=1)

    in_threads(work)
    target.flush()
    assert reports(kafka) == sum(counted) == 50 * THREADS
    assert len(counted) < 50 * THREADS / 2


def test_singles_that_wait_are_one_transaction(make, kafka, monkeypatch):
    """Of several collections, with and without clients, and a batch between them."""
    target, counted = make(), transactions(monkeypatch)
    waiting = target._pipeline.pause()
    assert waiting.reached.wait(60)
    receipts, barrier = [], threading.Barrier(THREADS)

    def work(number):
        barrier.wait(60)
        if number == 0:
            receipts.append(target.report("latency", [1, 2, 3], None, 60))
            return
        name, value = [("carrier", "AA"), ("latency", 5), ("destination", "JFK")][number % 3]
        receipts.append(target.report(name, value, None if number % 2 else f"client-{number}", 60))

    threads = threading.Thread(target=in_threads, args=(work,))
    threads.start()
    queue = target._pipeline._queue
    until = time.monotonic() + 60
    while len(queue._items) < THREADS - 1:  # the paused thread may hold one
        assert time.monotonic() < until
        time.sleep(0.001)
    waiting.over.open()
    threads.join()
    assert sorted(each.stored for each in receipts) == [1] * (THREADS - 1) + [3]
    assert sum(counted) == THREADS + 2
    assert len(counted) <= 2


@pytest.mark.slow
def test_receipts_are_exact_at_the_limit_of_a_budget(make, kafka):
    """Each client is refused at its limit, whichever threads' calls are randomized together."""
    budget = Budget(epsilon=12.0, delta=1e-6, period_seconds=10**9)
    target = make(
        Allowance(CARRIER, budget, reports_per_window=100),
        Allowance(LATENCY, None, reports_per_window=100),
    )
    outcomes = Counter()

    def work(number):
        for turn in range(10):
            client = f"client-{turn % 3}"
            outcomes[number, "carrier", client] += target.report("carrier", "AA", client).stored
            outcomes[number, "latency", client] += target.report("latency", number, client).stored
            receipt = target.report("latency", [1, 2], [client, client])
            assert receipt == Receipt(stored=2)

    in_threads(work)
    stored = Counter()
    for (_, name, client), count in outcomes.items():
        stored[name, client] += count
    assert {count for (name, _), count in stored.items() if name == "carrier"} == {12}
    assert sum(count for (name, _), count in stored.items() if name == "latency") == 10 * THREADS
    target.flush()
    counters = target.counters()
    assert counters.stored == {"carrier": 36, "latency": 30 * THREADS}
    assert counters.refused == {("carrier", "over_budget"): 10 * THREADS - 36}
    assert reports(kafka) == 36 + 30 * THREADS


def test_late_single_is_refused_alone(make, kafka):
    target, now = make(Allowance(CARRIER, None, reports_per_window=10)), time.time()

    def work(number):
        is_late = number % 2 == 0
        expected = Receipt(refused=1) if is_late else Receipt(stored=1)
        assert target.report("carrier", "AA", "ann", now - 86_400 * is_late) == expected

    in_threads(work)
    assert target.counters().refused == {("carrier", "too_late"): THREADS // 2}


def test_drop_reaches_every_call(make, kafka, monkeypatch, pin_messages: PinMessages) -> None:
    """The outbox has no room for any of them."""
    target, reasons = make(), set()
    with monkeypatch.context() as full:
        full.setattr(Outbox, "room", lambda _: 0)

        def work(number):
            receipt = target.report("latency", number, None, 60)
            assert receipt == Receipt(dropped=1)
            reasons.add(receipt.why_dropped)

        in_threads(work)
    assert target.counters().dropped == {"latency": THREADS}
    assert target.report("latency", 5, None, 60) == Receipt(stored=1)
    pin_messages({"the outbox is full": lambda: "\n".join(reasons), "flushed": target.flush})


@pytest.mark.parametrize("at", [True, "5", float("nan"), -1])
def test_wrong_times_are_refused_as_those_of_batches(make, at):
    target, messages = make(), []
    for values in (5, [5]):
        with pytest.raises((TypeError, ValueError)) as caught:
            target.report("latency", values, None, at)
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


def test_unknown_singles_are_counted(make, kafka):
    target = make()
    in_threads(lambda number: target.report("carrier", ("AA", "?")[number % 2], None, 60))
    assert target.unknown()["carrier"] == THREADS // 2


@pytest.mark.usefixtures("one_dies")
@pytest.mark.parametrize("where", ["randomizing", "storing"])
def test_dead_thread_releases_all_callers(make, kafka, monkeypatch, where):
    """At once, and with its death as their error."""
    target = make()
    target.report("latency", 1, None, 60)
    target.flush()

    def die(*_, **__):
        raise KeyError("canary-7391")

    if where == "storing":
        monkeypatch.setattr(StoreTransactions, "run", die)
    else:
        monkeypatch.setattr(QueueThread, "_without_singles", die)
    raised, began = [], time.monotonic()

    def work(number):
        try:
            receipt = target.report("latency", number, None, 60)
        except DeliveryError as error:
            raised.append(str(error))
        else:  # it was queued and never taken
            assert receipt == Receipt(dropped=1)
            raised.append(receipt.why_dropped)

    in_threads(work)
    assert time.monotonic() - began < 20
    assert len(raised) == THREADS
    (death,) = set(raised)
    with pytest.raises(DeliveryError, match=death):
        target.close()


def test_singles_of_a_memoizing_collection_keep_their_cohort(make, kafka):
    """A client's singles, joined with others', have the cohort of its batches."""
    target = make(Allowance(DESTINATION, None, reports_per_window=1000))
    windows = DESTINATION.window_start(time.time())
    in_threads(lambda number: target.report("destination", "JFK", f"client-{number}", windows))
    for number in range(THREADS):
        target.report("destination", ["JFK"] * 3, [f"client-{number}"] * 3, windows)
    target.flush()
    cohorts = Counter()
    for record in kafka.sent:
        pack = decode(record["value"])
        cohorts[pack.cohort] += pack.reports
    assert all(count % 4 == 0 for count in cohorts.values())
    assert len(cohorts) > 1


def test_true_value_is_forgotten_once_it_is_stored(make, kafka):
    """Although the thread may sleep for long after it."""
    target, value = make(), "".join(["canary", "-single-5518"])
    assert target.report("carrier", value, None) == Receipt(stored=1)
    assert wait_until(
        lambda: (
            not [each for each in gc.get_objects() if isinstance(each, SingleReport) and each.value == value]
        )
    )
