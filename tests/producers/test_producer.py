"""The producer with a fake Kafka: refusals, sent packs and counters."""

import logging
import pickle
import shutil
import sqlite3
import threading
import time
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from kafka.errors import KafkaTimeoutError

from deniable.config.settings.allowance import Allowance, Budget
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import ClosedError, DeliveryError, PartitionsError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline import storing_thread
from deniable.producers.pipeline.queueing.submission_queue import SubmissionQueue
from deniable.producers.responders import batch as parts
from deniable.producers.storage.input_progress import InputProgress, get_progress
from deniable.producers.storage.store import Store, StoreError
from deniable.protocol.secrets.secret import SecretError
from deniable.protocol.wire import bit_rows, buckets, decode
from tests.support.brokers.log_lines import logged, messages
from tests.support.messages import PinMessages
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY

CANARY = "canary-7391"


def wait_until(happened, seconds=10):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def packs(kafka):
    return [decode(record["value"]) for record in kafka.sent]


def test_packs_group_reports_by_collection_and_window(make, kafka):
    target = make()
    assert target.report("carrier", ["AA", "B6", "9E"], None, at=119.5) == Receipt(stored=3)
    target.report("carrier", "AA", None, at=120)
    target.report("latency", np.arange(5), None, at=[0, 60, 60, 60, 59])
    target.report("destination", ["JFK"] * 40, None, at=0)
    target.flush()
    counts = {}
    for pack in packs(kafka):
        key = (pack.fingerprint, pack.window_start, pack.mechanism, pack.width)
        counts[key] = counts.get(key, 0) + pack.reports
    assert counts == {
        (CARRIER.fingerprint, 60, 1, 4): 3,
        (CARRIER.fingerprint, 120, 1, 4): 1,
        (LATENCY.fingerprint, 0, 1, 1000): 2,
        (LATENCY.fingerprint, 60, 1, 1000): 3,
        (DESTINATION.fingerprint, 0, 2, 128): 40,
    }
    counters = target.counters()
    assert counters.stored == counters.acknowledged == {"carrier": 4, "latency": 5, "destination": 40}
    assert counters.packs == len(kafka.sent)
    assert counters.bytes == sum(len(record["value"]) for record in kafka.sent)
    assert (counters.backlog.packs, counters.backlog.bytes) == (0, 0)


def test_a_date_or_milliseconds_are_the_time_that_files_mean_by_them(make, kafka):
    """Through `report` and `record`, alone and among seconds."""
    target, now = make(), 1_767_225_600
    target.report("latency", [1, 2, 3], None, at=np.array([20_260_101, now * 1000, now]))
    target.report("latency", 1, None, at=20_260_101)
    target.record("latency", 1, None, at=now * 1000 + 250)
    with pytest.raises(ValueError, match="13 digits"):
        target.report("latency", [1, 2], None, at=[now, 12_345_678])
    target.flush()
    assert {pack.window_start for pack in packs(kafka)} == {now}
    assert sum(pack.reports for pack in packs(kafka)) == 5


def test_reports_default_to_the_present_time(make, kafka):
    before = int(time.time()) // 60 * 60
    target = make()
    target.report("carrier", "AA", None)
    target.flush()
    assert before <= packs(kafka)[0].window_start <= time.time()


def test_empty_batch_sends_no_packs(make, kafka):
    target = make()
    assert target.report("carrier", [], None) == Receipt()
    target.flush()
    assert kafka.sent == []


def test_sent_reports_are_randomized_by_the_mechanism(make, kafka):
    """20,000 reports of one value: the share of the truth is within 5 standard deviations of p (6e-7)."""
    target = make()
    target.report("carrier", ["B6"] * 20_000, None)
    target.report("destination", ["JFK"] * 20_000, None)
    target.flush()
    krr, rappor = CARRIER.mechanism, DESTINATION.mechanism
    sent = np.concatenate([buckets(pack) for pack in packs(kafka) if pack.mechanism == 1])
    assert abs((sent == 1).mean() - krr.p) < 5 * np.sqrt(krr.p * (1 - krr.p) / 20_000)
    rows = np.concatenate([bit_rows(pack) for pack in packs(kafka) if pack.mechanism == 2])
    ones = np.unpackbits(rows).mean()
    # Two hashes set 2 bits of 128, or 1 in the cohorts where they meet.
    least, most = (rappor.p_star + share * (rappor.q_star - rappor.p_star) for share in (1 / 128, 2 / 128))
    assert least - 0.002 < ones < most + 0.002


def test_reports_over_a_limit_are_refused_and_never_sent(make, kafka):
    day = Budget(epsilon=3.0, delta=1e-6, period_seconds=10**9)
    target = make(Allowance(CARRIER, day, reports_per_window=2))
    now = int(time.time())
    receipt = target.report("carrier", ["AA"] * 5, ["ann", "ann", "ann", "ben", "ben"], at=now)
    assert receipt == Receipt(stored=4, refused=1)
    assert target.report("carrier", "AA", "ben", at=now - 100_000) == Receipt(refused=1)
    assert target.report("carrier", ["AA"] * 2, ["ann", "ben"], at=now + 60) == Receipt(stored=2)
    assert target.report("carrier", ["AA"] * 2, ["ann", "ben"], at=now + 120) == Receipt(refused=2)
    target.flush()
    assert sum(pack.reports for pack in packs(kafka)) == 6
    counters = target.counters()
    assert counters.stored == {"carrier": 6}
    assert counters.refused == {
        ("carrier", "over_window"): 1,
        ("carrier", "too_late"): 1,
        ("carrier", "over_budget"): 2,
    }
    assert 0.7 < counters.budget_used["carrier"] <= 1


def test_untimely_reports_are_refused_uncharged(make, kafka):
    """Beyond the clock tolerance; with clients, every late report."""
    target = make(Allowance(CARRIER, Budget(epsilon=3.0, delta=1e-6, period_seconds=2**31)))
    now = LATENCY.window_start(time.time())
    at = [now - 86_400, now - 300, now, now + 300, now + 86_400]
    assert target.report("carrier", ["AA"] * 5, None, at=at) == Receipt(stored=3, refused=2)
    assert target.report("carrier", ["AA"] * 5, ["ann"] * 5, at=at) == Receipt(stored=2, refused=3)
    assert target.counters().refused == {("carrier", "too_early"): 2, ("carrier", "too_late"): 3}
    # Two of the three reports that the budget allows are spent.
    assert target.report("carrier", ["AA"] * 2, ["ann"] * 2, at=[now + 60, now + 120]).stored == 1
    target.flush()
    assert sorted({pack.window_start for pack in packs(kafka)}) == [now - 300, now, now + 60, now + 300]


def test_refuses_clientless_report_above_the_budget(make, kafka):
    target = make(Allowance(LATENCY, Budget(0.5, 1e-6, 86_400)))
    with pytest.raises(ValueError, match="latency"):
        target.report("latency", 1, None)
    target.flush()
    assert kafka.sent == []


def test_next_producer_knows_spending(make):
    allowance = Allowance(LATENCY, Budget(1.5, 1e-6, 86_400 * 365))
    first = make(allowance)
    assert first.report("latency", 1, "ann").stored == 1
    first.close()
    assert make(allowance).report("latency", 1, "ann").refused == 1


def test_no_trace_of_client_or_value_is_sent(make, kafka):
    target = make()
    target.report("destination", [CANARY] * 100, None)
    target.report("destination", [CANARY], ["client-5519"])
    target.report("carrier", [CANARY], ["client-5519"])
    target.flush()
    for record in kafka.sent:
        assert set(record) == {"topic", "value", "partition", "timestamp_ms", "headers"}
        assert record["headers"] == []
        assert record["timestamp_ms"] % 60_000 == 0
        assert CANARY.encode() not in record["value"]
        assert b"5519" not in record["value"]


def test_no_client_or_value_is_in_the_folder(make, kafka, tmp_path):
    """While reports wait to be sent, and after; whoever reads the folder without the secret sees neither."""
    target = make()
    kafka.acknowledges = False
    target.report("destination", [CANARY] * 50, [f"client-5519{number}" for number in range(50)])
    target.report("carrier", [CANARY], ["client-5519"])

    def content():
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert any(file.stat().st_size > 4096 for file in files)
        return b"".join(file.read_bytes() for file in files)

    waiting = content()
    kafka.acknowledges = True
    kafka.acknowledge()
    target.flush()
    for stored in (waiting, content()):
        assert CANARY.encode() not in stored
        assert b"client-5519" not in stored


def test_unknown_values_are_counted_only_locally(make, caplog):
    """Logs and counters do not show the number of unknown values, which is a true count."""
    make().close()  # creates the secret, and logs it
    caplog.clear()
    messages = []
    for values, unknown in ((["AA", CANARY, ""], 2), (["AA", "AA", "AA"], 0)):
        target = make()
        target.report("carrier", values, None)
        assert target.unknown() == {"carrier": unknown, "latency": 0, "destination": 0}
        assert "unknown" not in {field.name for field in fields(target.counters())}
        target.close()
        messages.append(list(caplog.messages))
        caplog.clear()
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nobody", CANARY, None), ValueError),
        (("carrier", b"7391", None), TypeError),
        (("carrier", ["AA", {CANARY: 7391}], None), TypeError),
        (("latency", [1, float("nan"), [7391]], None), TypeError),
        (("destination", [CANARY, b"7391"], None), TypeError),
        (("carrier", ["AA", CANARY], [CANARY]), ValueError),
        (("destination", [CANARY], [7391.5]), TypeError),
        (("destination", [CANARY] * 3, [CANARY, CANARY, ""]), ValueError),
        (("destination", CANARY, ""), ValueError),
        (("carrier", ["AA", CANARY], None, -7391), ValueError),
        (("carrier", ["AA", CANARY], None, [1, 2, 3]), ValueError),
    ],
)
def test_wrong_arguments_are_refused_and_not_shown(make, kafka, arguments, error):
    target = make()
    with pytest.raises(error) as caught:
        target.report(*arguments)
    assert CANARY not in str(caught.value)
    assert "7391" not in str(caught.value)
    target.flush()
    assert kafka.sent == []
    assert sum(target.unknown().values()) == 0


def test_report_after_close_is_refused(make, kafka):
    target = make()
    target.report("carrier", "AA", None)
    target.close()
    assert len(kafka.sent) == 1
    assert kafka.closed == 1
    target.close()
    for call in (lambda: target.report("carrier", "AA", None), target.flush):
        with pytest.raises(ClosedError):
            call()
    assert target.counters().acknowledged == {"carrier": 1}


def test_context_manager_flushes(make, kafka):
    with make() as target:
        target.report("carrier", "AA", None)
    assert len(kafka.sent) == 1
    assert kafka.closed == 1


def test_partial_packs_are_sent_at_a_tick(make, kafka):
    target = make(pack_seconds=0.02)
    target.report("carrier", "AA", None)
    wait_until(lambda: len(kafka.sent) == 1)


def test_long_batch_is_randomized_in_parts(make, kafka):
    target = make()
    target.report("latency", np.arange(150_000) % 1000, None, at=np.arange(150_000) // 75_000 * 60)
    target.flush()
    assert sum(pack.reports for pack in packs(kafka) if pack.window_start == 60) == 75_000
    assert target.counters().acknowledged == {"latency": 150_000}


@pytest.mark.slow
def test_threads_neither_lose_nor_double_reports(make, kafka):
    target = make(pack_reports=10, pack_seconds=0.01)
    receipts = []

    def work():
        receipts.extend(target.report("latency", [1, 2, 3], None) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    target.flush()
    sent = packs(kafka)
    assert receipts == [Receipt(stored=3)] * 300
    assert sum(pack.reports for pack in sent) == target.counters().acknowledged["latency"] == 900
    assert len({pack.pack_id for pack in sent}) == len(sent)


@pytest.mark.slow
def test_reports_wait_for_kafka(make, kafka, pin_messages: PinMessages) -> None:
    kafka.refuses = KafkaTimeoutError("no metadata")
    target = make()
    assert target.report("latency", [1, 2, 3], None) == Receipt(stored=3)
    pin_messages({"the broker takes no pack": lambda: target.flush(timeout=0.5)})
    assert target.counters().backlog.packs == 1
    kafka.refuses = None
    target.flush()
    assert target.counters().acknowledged == {"latency": 3}


@pytest.mark.slow
def test_next_producer_resends_unacknowledged_packs(make, kafka, pin_messages: PinMessages) -> None:
    """The same record, pack id included, to the same partition."""
    kafka.acknowledges = False
    first = make()
    first.report("latency", [1, 2, 3], None)
    pin_messages({"no pack is acknowledged": lambda: first.close(timeout=0.2)})
    kafka.acknowledges = True
    make().flush()
    assert len(kafka.sent) == 2
    assert kafka.sent[0] == kafka.sent[1]


def test_wrong_topic_is_reported_at_once_and_nothing_is_sent(
    make, kafka, monkeypatch, pin_messages: PinMessages
) -> None:
    def refuse(*_):
        raise PartitionsError("topic reports must have 4 partitions, got 3")

    monkeypatch.setattr(storing_thread, "connect", refuse)
    target = make()
    target.report("latency", [1, 2, 3], None)
    pin_messages({"flushed": target.flush, "closed": target.close})
    assert kafka.sent == []


@pytest.mark.slow
def test_full_outbox_drops_and_counts_reports(make, kafka):
    kafka.acknowledges = False
    target = make(outbox_bytes=1_000_000)
    receipts = [target.report("latency", np.zeros(100_000, np.int64), None) for _ in range(10)]
    total = sum(receipts, Receipt())
    assert total.stored + total.dropped == 1_000_000
    assert 300_000 < total.stored <= 500_000
    kafka.acknowledges = True
    kafka.acknowledge()
    with pytest.raises(DeliveryError, match=str(total.dropped)):
        target.flush()
    target.flush()
    assert target.report("latency", 1, None) == Receipt(stored=1)
    assert target.counters().dropped == {"latency": total.dropped}
    target.flush()
    assert sum(pack.reports for pack in packs(kafka)) == total.stored + 1


def lock(folder):
    connection = sqlite3.connect(folder / "producer.sqlite", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection


@pytest.mark.slow
def test_report_blocks_no_longer_than_configured(make, kafka, tmp_path, monkeypatch):
    """With a locked store, four batches of 6 MB in a queue of 16 MB wait 1.5 s in all, not each."""
    monkeypatch.setattr(parts, "PART_REPORTS", 600_000)
    monkeypatch.setattr(parts, "PART_BYTES", 10**9)
    waits, put = [], SubmissionQueue.put

    def recorded(queue, item, seconds):
        waits.append(seconds)
        return put(queue, item, seconds)

    monkeypatch.setattr(SubmissionQueue, "put", recorded)
    target = make(block_milliseconds=1500)
    held = lock(tmp_path)
    target.report("latency", 1, None)
    started = time.monotonic()
    receipt = target.report("latency", np.zeros(2_400_000, np.int64), None)
    assert time.monotonic() - started >= 1.5
    assert waits[-1] <= 0
    assert receipt.pending + receipt.dropped == 2_400_000
    assert receipt.dropped >= 600_000 <= receipt.pending
    held.execute("ROLLBACK")
    held.close()
    wait_until(lambda: target.counters().stored.get("latency", 0) == 1 + receipt.pending)
    with pytest.raises(DeliveryError, match=str(receipt.dropped)):
        target.flush()
    assert sum(pack.reports for pack in packs(kafka)) == 1 + receipt.pending


def test_store_locked_by_another_process_loses_nothing(make, kafka, tmp_path):
    target = make(block_milliseconds=100)
    held = lock(tmp_path)
    assert target.report("latency", [3, 4, 5], None) == Receipt(pending=3)
    held.execute("ROLLBACK")
    held.close()
    target.flush()
    assert sum(pack.reports for pack in packs(kafka)) == 3


@pytest.mark.slow
def test_store_locked_to_the_end_drops_and_reports(make, kafka, tmp_path, monkeypatch, caplog):
    """Reports stored before are sent; the failed ones are not."""
    target = make(block_milliseconds=100, timing=ProducerTiming(busy=0.01, retry=(0.01,)))
    assert target.report("latency", [1, 2], None).dropped == 0
    target.flush()
    held = lock(tmp_path)
    assert target.report("latency", [3, 4, 5], None) == Receipt(pending=3)
    with pytest.raises(DeliveryError, match="3"):
        target.close(0.1)
    held.execute("ROLLBACK")
    held.close()
    assert sum(pack.reports for pack in packs(kafka)) == 2
    (warning,) = [each for each in logged(caplog) if each.levelno == logging.ERROR]
    assert str(tmp_path / "producer.sqlite") in warning.getMessage()


def test_input_progress_is_stored_with_reports(make, tmp_path, kafka):
    kafka.acknowledges = False
    target = make(outbox_bytes=1_000_000)
    place = InputProgress(inode=5, bytes_done=100, lines=3, digest=b"x" * 32)
    assert target._report("latency", [1, 2], None, progress=("/in.csv", place)).stored == 2
    beyond = InputProgress(inode=5, bytes_done=200, lines=6, digest=b"y" * 32)
    too_many = np.zeros(600_000, np.int64)
    assert target._report("latency", too_many, None, progress=("/in.csv", beyond)).dropped == 600_000
    store = Store(tmp_path)
    assert get_progress(store, "/in.csv") == place
    store.close()
    target._report("latency", [], None, progress=("/in.csv", beyond))
    store = Store(tmp_path)
    assert get_progress(store, "/in.csv") == beyond
    store.close()
    kafka.acknowledges = True
    kafka.acknowledge()
    with pytest.raises(DeliveryError, match="600000"):
        target.flush()


def test_late_pack_is_counted_as_expired(make, kafka):
    """Window of 60 s, grace 30 s: 90 s after its start is in time, a millisecond more is late."""
    target = make(Allowance(LATENCY, None))
    start = LATENCY.window_start(time.time())
    for append_ms, expired in ((90_000, 0), (90_001, 3)):
        kafka.append_ms = 1000 * start + append_ms
        target.report("latency", [1, 2, 3], None, at=start)
        target.flush()
        assert target.counters().expired.get("latency", 0) == expired


@pytest.mark.slow
def test_briefly_locked_store_keeps_new_reports(make, kafka, tmp_path):
    """The producer retries while callers may wait, and drops nothing."""
    target = make()
    held = lock(tmp_path)
    timer = threading.Timer(0.3, held.rollback)
    timer.start()
    assert target.report("latency", [1, 2], None) == Receipt(stored=2)
    timer.join()
    held.close()
    target.flush()
    assert sum(pack.reports for pack in packs(kafka)) == 2


def test_refuses_another_secret_and_a_readable_store(make, tmp_path):
    make().close()
    (tmp_path / "secret").write_bytes(b"x" * 32)
    with pytest.raises(SecretError):
        make()
    (tmp_path / "producer.sqlite").chmod(0o644)
    with pytest.raises(StoreError, match=str(tmp_path)):
        make()


@pytest.mark.slow
def test_producer_is_not_ready_while_packs_wait_unacknowledged(
    make, kafka, monkeypatch, pin_messages: PinMessages
) -> None:
    kafka.acknowledges = False
    target = make(pack_seconds=0.05, timing=ProducerTiming(stall=0.2, retry=(0.01,)))
    time.sleep(0.3)
    assert target.reasons_not_ready() == []  # nothing waits
    target.report("latency", [1, 2, 3], None)
    # Once the sender has asked.
    wait_until(lambda: any("refused" in each for each in target.reasons_not_ready()))
    pin_messages({"a pack waits": lambda: "\n".join(target.reasons_not_ready())})
    kafka.acknowledges = True
    kafka.acknowledge()
    wait_until(lambda: not target.reasons_not_ready())


def test_deleted_folder_is_noticed_before_anything_is_stored(
    make, tmp_path, pin_messages: PinMessages
) -> None:
    folder = tmp_path / "data"
    target = make(data_dir=folder)
    assert target.report("latency", [1, 2], None).stored == 2
    shutil.rmtree(folder)
    receipt = target.report("latency", [1, 2, 3], None)
    assert (receipt.stored, receipt.dropped) == (0, 3)
    assert receipt.why_dropped in target.reasons_not_ready()[0]
    pin_messages({"the folder was deleted": lambda: "\n".join(target.reasons_not_ready())})
    with pytest.raises(DeliveryError, match=str(folder)):
        target.close(timeout=1)
    assert not folder.exists()


def test_error_of_the_application_is_not_hidden(make, kafka, caplog, pin_messages: PinMessages) -> None:
    """Leaving `with` because of an error raises that error alone; what closing finds is logged."""
    kafka.acknowledges = False
    with pytest.raises(KeyError) as caught:
        fail_within(make(), timeout=0.1)
    assert caught.value.__context__ is None
    pin_messages({"closed because of an error": lambda: messages(caplog)[-1]})


def fail_within(target, timeout):
    target.close = partial(target.close, timeout)
    with target:
        target.report("latency", [1], None)
        raise KeyError


def test_producer_is_not_passed_to_another_process(make):
    with pytest.raises(TypeError, match="another process"):
        pickle.dumps(make())
