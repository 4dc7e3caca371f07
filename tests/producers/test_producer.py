"""The producer, with a stand-in for Kafka: what is refused, what leaves, what is counted."""

import subprocess
import sys
import threading
import time
from dataclasses import fields

import numpy as np
import pytest
from fake_kafka import FakeKafka
from kafka.errors import KafkaTimeoutError
from sources import RepeatableWords

from estimators.collection import Collection
from estimators.krr import KRR
from estimators.rappor import Rappor
from producers import producer
from producers.connection import DeliveryError
from producers.producer import Producer
from producers.wire import bit_rows, buckets, decode

NEVER = 3600.0
CANARY = "canary-7391"
CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
DESTINATION = Collection("destination", BLOOM, memoize=True)


@pytest.fixture
def kafka(monkeypatch):
    """The connection that every Producer here gets."""
    fake = FakeKafka(acknowledges=True)
    monkeypatch.setattr(producer, "connect", lambda *_: fake)
    return fake


@pytest.fixture
def make(kafka, tmp_path):
    """Makes producers that are closed at the end; they tick only if told to."""
    made = []

    def make_one(*collections, **options):
        options = {"pack_seconds": NEVER, **options}
        collections = collections or (CARRIER, LATENCY, DESTINATION)
        made.append(Producer(collections, "", "reports", 4, tmp_path, **options))
        return made[-1]

    yield make_one
    kafka.acknowledge()
    for each in made:
        each.close(timeout=1.0)


def wait_until(happened, seconds=10):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def packs(kafka):
    return [decode(record["value"]) for record in kafka.sent]


def test_reports_leave_in_packs_of_their_collection_window_and_cohort(make, kafka):
    target = make()
    target.report("carrier", ["AA", "B6", "9E"], at=119.5)
    target.report("carrier", "AA", at=120)
    target.report("latency", np.arange(5), at=[0, 60, 60, 60, 59])
    target.report("destination", ["JFK"] * 40, at=0)
    target.flush()
    tally = {}
    for pack in packs(kafka):
        key = (pack.fingerprint, pack.window_start, pack.mechanism, pack.width)
        tally[key] = tally.get(key, 0) + pack.reports
    assert tally == {
        (CARRIER.fingerprint, 60, 1, 4): 3,
        (CARRIER.fingerprint, 120, 1, 4): 1,
        (LATENCY.fingerprint, 0, 1, 1000): 2,
        (LATENCY.fingerprint, 60, 1, 1000): 3,
        (DESTINATION.fingerprint, 0, 2, 128): 40,
    }
    assert target.counters().reports == {"carrier": 4, "latency": 5, "destination": 40}
    assert target.counters().packs == len(kafka.sent)
    assert target.counters().bytes == sum(len(record["value"]) for record in kafka.sent)


def test_reports_without_a_time_are_of_now(make, kafka):
    before = int(time.time()) // 60 * 60
    target = make()
    target.report("carrier", "AA")
    target.flush()
    assert before <= packs(kafka)[0].window_start <= time.time()


def test_what_is_sent_is_randomized_by_the_mechanism_of_the_collection(make, kafka):
    """20,000 reports of one value: the share of the truth within 5 standard deviations of p, about 6e-7."""
    target = make()
    target.report("carrier", ["B6"] * 20_000)
    target.report("destination", ["JFK"] * 20_000)
    target.flush()
    krr, rappor = CARRIER.mechanism, DESTINATION.mechanism
    sent = np.concatenate([buckets(pack) for pack in packs(kafka) if pack.mechanism == 1])
    assert abs((sent == 1).mean() - krr.p) < 5 * np.sqrt(krr.p * (1 - krr.p) / 20_000)
    rows = np.concatenate([bit_rows(pack) for pack in packs(kafka) if pack.mechanism == 2])
    ones = np.unpackbits(rows).mean()
    # Two hashes set 2 bits of 128, or 1 in the cohorts where they meet.
    least, most = (rappor.p_star + share * (rappor.q_star - rappor.p_star) for share in (1 / 128, 2 / 128))
    assert least - 0.002 < ones < most + 0.002


def stream(make, kafka, monkeypatch, values, destinations, clients):
    """All that leaves for some values, with the same words drawn for every stream."""
    kafka.sent.clear()
    monkeypatch.setattr(producer, "Keystream", lambda: RepeatableWords(3))
    target = make(pack_reports=7)
    for start in range(0, 60, 20):
        part = slice(start, start + 20)
        target.report("carrier", values[part], clients[part], at=start)
        target.report("destination", destinations[part], clients[part], at=start)
        target.report("destination", destinations[part], at=start)
    target.flush()
    return kafka.sent[:]


def test_two_streams_that_differ_in_values_only_differ_in_payload_only(make, kafka, monkeypatch):
    """Number, order, size, partition, id, cohort and window of packs: the same, unknown values included."""
    clients = [f"client-{number}" for number in range(60)]
    strange = ["\udc80", "Zürich", "x" * 5000]
    plain = stream(make, kafka, monkeypatch, ["AA"] * 60, ["JFK"] * 60, clients)
    mixed = stream(make, kafka, monkeypatch, ["ZZ", "9E", ""] * 20, strange * 20, clients)
    assert len(plain) == len(mixed) > 20
    for left, right in zip(plain, mixed, strict=True):
        assert {**left, "value": 0} == {**right, "value": 0}
        assert left["value"][:48] == right["value"][:48]
        assert len(left["value"]) == len(right["value"])
    assert [record["value"] for record in plain] != [record["value"] for record in mixed]


def test_no_trace_of_client_or_value_leaves(make, kafka):
    target = make()
    target.report("destination", [CANARY] * 100, ["client-5519"] * 100)
    target.report("carrier", [CANARY] * 100, ["client-5519"] * 100)
    target.flush()
    for record in kafka.sent:
        assert set(record) == {"topic", "value", "partition", "timestamp_ms"}
        assert record["timestamp_ms"] % 60_000 == 0
        assert CANARY.encode() not in record["value"]
        assert b"5519" not in record["value"]
    (cohort,) = {pack.cohort for pack in packs(kafka) if pack.mechanism == 2}
    assert 0 <= cohort < 8


def test_unknown_values_are_counted_here_only(make, capsys):
    """Two streams that differ in unknown values alone say the same: how many there were is a true count."""
    said = []
    for values, unknown in ((["AA", CANARY, ""], 2), (["AA", "AA", "AA"], 0)):
        target = make()
        target.report("carrier", values)
        assert target.unknown() == {"carrier": unknown, "latency": 0, "destination": 0}
        assert "unknown" not in {field.name for field in fields(target.counters())}
        target.close()
        said.append(capsys.readouterr())
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("nobody", CANARY), ValueError, "collection must be one of carrier, latency, destination"),
        (
            ("carrier", 7391),
            TypeError,
            "values of carrier must be one or a list, tuple or array of them, got int",
        ),
        (("carrier", ["AA", 7391]), TypeError, "values of carrier must be text, got int; quote or convert"),
        (
            ("carrier", ["AA", None]),
            TypeError,
            "values of carrier must be text, got NoneType; quote or convert",
        ),
        (("latency", [1, float("nan")]), TypeError, "values of latency must be integers, got float; convert"),
        (("destination", [CANARY, 7391]), TypeError, "values of destination must be text, got int; quote"),
        (
            ("carrier", ["AA", CANARY], [CANARY]),
            ValueError,
            "clients must be one for each value, got 1 for 2",
        ),
        (("destination", [CANARY], [7391]), TypeError, "clients must be text, got int"),
        (
            ("carrier", ["AA", CANARY], None, -7391),
            ValueError,
            "at must be unix seconds in [0, 253402300799]",
        ),
        (
            ("carrier", ["AA", CANARY], None, [1, 2, 3]),
            ValueError,
            "at must be one number or one for each of 2",
        ),
    ],
)
def test_what_is_wrong_is_refused_whole_and_not_shown(make, kafka, arguments, error, message):
    target = make()
    with pytest.raises(error) as caught:
        target.report(*arguments)
    assert str(caught.value).startswith(message)
    assert CANARY not in str(caught.value)
    assert "7391" not in str(caught.value)
    target.flush()
    assert kafka.sent == []
    assert sum(target.unknown().values()) == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("pack_reports", 0, "pack_reports must be in [1, 1000000], got 0"),
        ("pack_reports", 1_000_001, "pack_reports must be in [1, 1000000], got 1000001"),
        ("pack_seconds", 0, "pack_seconds must be in (0, 3600], got 0"),
        ("pack_seconds", 3601, "pack_seconds must be in (0, 3600], got 3601"),
        ("block_seconds", -0.1, "block_seconds must be in [0, 3600], got -0.1"),
        ("bytes_in_flight", 999_999, "bytes_in_flight must be in [1000000, inf), got 999999"),
        ("connect_seconds", 0, "connect_seconds must be in (0, 3600], got 0"),
    ],
)
def test_options_out_of_range_are_refused(make, option, value, message):
    with pytest.raises(ValueError, match="must be in") as caught:
        make(**{option: value})
    assert str(caught.value) == message


def test_two_collections_of_one_name_are_refused(make):
    with pytest.raises(ValueError, match=r"^names of collections must be distinct, got carrier twice$"):
        make(CARRIER, LATENCY, CARRIER)


def test_nothing_is_reported_after_close(make, kafka):
    target = make()
    target.report("carrier", "AA")
    target.close()
    assert len(kafka.sent) == 1
    assert kafka.is_closed
    target.close()
    with pytest.raises(RuntimeError, match=r"^the producer is closed$"):
        target.report("carrier", "AA")


def test_a_context_manager_flushes(make, kafka):
    with make() as target:
        target.report("carrier", "AA")
    assert len(kafka.sent) == 1
    assert kafka.is_closed


def test_packs_that_are_not_full_leave_at_a_tick(make, kafka):
    target = make(pack_seconds=0.02)
    target.report("carrier", "AA")
    wait_until(lambda: len(kafka.sent) == 1)


def test_ticks_are_jittered(make):
    target = make(pack_seconds=8.0)
    waits = [target._jittered() for _ in range(1000)]
    assert 2.0 <= min(waits) < 2.1
    assert 5.9 < max(waits) < 6.0


def test_a_report_waits_no_longer_than_it_may(make, kafka):
    """Two packs of 400 kB fit; three more wait for 1 s in all, not each, and are dropped."""
    kafka.acknowledges = False
    target = make(LATENCY, bytes_in_flight=1_000_000, pack_reports=200_000, block_seconds=1.0)
    target.report("latency", np.zeros(400_000, np.int64))
    started = time.monotonic()
    target.report("latency", np.zeros(600_000, np.int64))
    assert 1.0 <= time.monotonic() - started < 2.5
    assert target.counters().dropped == 600_000
    kafka.acknowledge()
    with pytest.raises(DeliveryError, match="600000 dropped for want of room, 0 failed, 0 not acknowledged"):
        target.flush(timeout=0.0)
    assert target.counters().reports == {"latency": 400_000}


def test_losses_are_logged_at_a_tick(make, kafka, capsys):
    kafka.refuses = KafkaTimeoutError("no metadata")
    target = make(pack_seconds=0.02)
    target.report("carrier", [CANARY])
    wait_until(lambda: "reports lost" in capsys.readouterr().out)
    assert target.counters().failed == 1
    with pytest.raises(DeliveryError, match="1 failed"):
        target.flush()


def test_a_long_batch_is_randomized_in_parts(make, kafka):
    target = make()
    target.report("latency", np.arange(150_000) % 1000, at=np.arange(150_000) // 75_000 * 60)
    target.flush()
    assert sum(pack.reports for pack in packs(kafka) if pack.window_start == 60) == 75_000
    assert target.counters().reports == {"latency": 150_000}


def test_threads_lose_and_double_nothing(make, kafka):
    target = make(pack_reports=10, pack_seconds=0.01)

    def work():
        for _ in range(200):
            target.report("latency", [1, 2, 3])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    target.flush()
    sent = packs(kafka)
    assert sum(pack.reports for pack in sent) == target.counters().reports["latency"] == 6 * 200 * 3
    assert len({pack.pack_id for pack in sent}) == len(sent)


FORK = """
import os, pathlib, sys
from producers import producer

class Kafka:
    def close(self, timeout): pass

producer.connect = lambda *_: Kafka()
target = producer.Producer([], "", "reports", 4, pathlib.Path(sys.argv[1]), pack_seconds=3600)
target._lock.acquire()  # as the ticking thread may hold it at the moment of the fork
child = os.fork()
if child == 0:
    for call in (lambda: target.report("x", "y"), target.flush, target.close):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
target._lock.release()
os.waitpid(child, 0)
target.close()
"""


def test_a_forked_copy_refuses_to_work(tmp_path):
    """Else what was buffered would be sent, and counted, twice."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    message = "the producer belongs to the process that made it; make another after a fork"
    assert run.stdout.splitlines()[:3] == [message] * 3
