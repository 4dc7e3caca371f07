"""A producer and an edge that answers as told: retries have the same bytes, and each pack gets an outcome."""

import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from deniable.config.settings.edge_address import EdgeAddress
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.pipeline import storing_thread
from deniable.producers.producer import Producer
from deniable.producers.storage.store import Store
from deniable.producers.transport.edge import delivery as edge_delivery
from deniable.producers.transport.edge.connection import EdgeConnection
from deniable.protocol.uploads.upload import MAX_UPLOAD_BYTES, decode_upload
from tests.support.brokers.log_lines import logged
from tests.support.edge.fake_edge import fake_edge, in_json, in_turn, plain, raw, rejecting
from tests.support.messages import PinMessages
from tests.support.processes import new_port, wait_until
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.questions import FREE

QUICK = ProducerTiming(retry=(0.01,), stall=0.5, disconnect=0.2)


@pytest.fixture
def server():
    with fake_edge() as server:
        yield server


@pytest.fixture
def make(server, tmp_path):
    created = []

    def make_one(**options):
        given = {"data_dir": tmp_path, "pack_seconds": 0.05, "block_milliseconds": 60_000, "timing": QUICK}
        edge = options.pop("edge", EdgeAddress(server.url))
        created.append(Producer(ProducerConfig(allowances=FREE, edge=edge, **given | options)))
        return created[-1]

    yield make_one
    server.answer = plain(204)
    for each in created:
        each.close()


def rows(server):
    """Reports of the different uploads that arrived, and the number of uploads with repeated ones."""
    uploads = [each.body for each in server.uploads()]
    groups = [group for body in set(uploads) for group in decode_upload(body).groups]
    assert len({decode_upload(body).upload_id for body in uploads}) == len(set(uploads))
    return sum(group.reports for group in groups), len(uploads)


def test_request_says_nothing_but_the_upload(make, server):
    """The same headers for every value, without a version or an address of this machine."""
    producer = make()
    for value in (1, 999) * 3:
        producer.report("latency", value, None)
        producer.flush()
    first, second, *_ = uploads = server.uploads()
    port = server.server_port
    assert (first.method, first.path) == ("POST", "/v1/reports")
    assert first.headers == second.headers == {
        "Host": f"127.0.0.1:{port}",
        "User-Agent": "deniable",
        "Content-Type": "application/vnd.deniable.reports",
        "Content-Length": str(len(first.body)),
    }  # fmt: skip
    # Connections stay open. A second one opens if the first is busy comparing parameters.
    assert len(uploads) == 6
    assert len({each.connection for each in uploads}) <= 2
    upload = decode_upload(first.body)
    (group,) = upload.groups
    assert group.window_start % 60 == 0
    assert len(first.body) == 23 + 27 + 2 + 4
    counters = producer.counters()
    assert (counters.acknowledged, counters.packs, counters.expired) == ({"latency": 6}, 6, {})


def test_path_of_the_url_precedes_the_protocols(make, server):
    producer = make(edge=EdgeAddress(f"{server.url}/telemetry/"))
    producer.report("latency", 1, None)
    producer.flush()
    assert {each.path for each in server.asked} == {"/telemetry/v1/reports", "/telemetry/v1/collections"}


CUT = b"HTTP/1.1 204 No Con"
ENDLESS = b"HTTP/1.1 503 Later\r\nContent-Type: text/plain\r\n\r\n" + b"x" * 100_000
PASSING = {
    "429": plain(429, Retry_After="0"),
    "503": in_json(503, {"error": "Kafka is away"}, Retry_After="0"),
    "500": plain(500, b"oops"),
    "closed": raw(b""),
    "cut": raw(CUT),
    "garbage": raw(b"\x00\xff" * 50),
    "endless headers": raw(b"HTTP/1.1 204 No Content\r\n" + b"X: y\r\n" * 200),
    "endless body": raw(ENDLESS),
    "redirect": plain(307, b"", Location="http://127.0.0.1:9/v1/reports"),
    "portal": plain(200, b"<html>log in</html>"),
    "proxy's 400": plain(400, b"<html>The plain HTTP request was sent to HTTPS port</html>"),
    "proxy's 404": plain(404, b"<html>nothing</html>"),
    "bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSING)
def test_pack_is_sent_again_with_the_same_bytes(make, server, name):
    server.answer = in_turn(PASSING[name], PASSING[name], plain(204))
    producer = make()
    assert producer.report("latency", [1, 2, 3], None).stored == 3
    assert wait_until(lambda: producer.counters().packs == 1, 30)
    bodies = [each.body for each in server.uploads()]
    assert len(bodies) >= 3
    assert len(set(bodies)) == 1
    counters = producer.counters()
    assert (counters.acknowledged, counters.rejected) == ({"latency": 3}, {})


EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\n\r\n"
LATER = b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("first", [EARLY_HINTS, LATER], ids=["1xx", "two answers"])
def test_an_answer_acknowledges_no_other_upload(server, first):
    """A second answer on a connection, which stays open, belongs to no later request."""
    is_read, written = threading.Event(), threading.Event()

    def answer(handler):
        handler.wfile.write(first)
        handler.wfile.flush()
        is_read.wait(60)
        handler.wfile.write(NO_CONTENT)
        handler.wfile.flush()
        written.set()

    server.answer = in_turn(answer, plain(503))
    connection = EdgeConnection(EdgeAddress(server.url), 5.0, 5.0)
    assert connection.post(b"first").status in (103, 503)
    is_read.set()
    assert written.wait(60)
    assert connection.post(b"second").status == 503
    connection.close()
    assert [each.body for each in server.uploads()] == [b"first", b"second"]


def test_flush_says_at_once_that_this_is_no_edge(make, server):
    server.answer = PASSING["redirect"]
    producer = make()
    producer.report("latency", [1], None)
    with pytest.raises(DeliveryError, match="307"):
        producer.flush(60)
    assert {each.path for each in server.asked} == {"/v1/reports", "/v1/collections"}
    server.answer = plain(204)
    assert wait_until(lambda: producer.counters().packs == 1, 30)


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400, 409])
@pytest.mark.parametrize("reason", ["unknown_collection", "too_late", "never heard of"])
def test_rejected_pack_is_given_up_and_counted(make, server, status, reason, tmp_path):
    server.answer = in_turn(rejecting(status, reason), plain(204))
    producer = make()
    producer.report("carrier", ["AA"] * 4, None)
    producer.flush()
    producer.report("carrier", ["AA"] * 5, None)
    producer.flush()
    counters = producer.counters()
    known = "other" if reason == "never heard of" else reason
    assert counters.rejected == {("carrier", known): 4}
    assert (counters.acknowledged, counters.stored) == ({"carrier": 5}, {"carrier": 9})
    assert (counters.packs, counters.backlog.packs, counters.unsendable) == (1, 0, 0)
    figure = {"collection": "carrier", "reason": known}
    assert producer.registry.get_sample_value("deniable_producer_rejected_total", figure) == 4
    figure = {"collection": "carrier", "result": "rejected"}
    assert producer.registry.get_sample_value("deniable_producer_reports_total", figure) == 4
    assert len(server.uploads()) == 2


def test_refused_packs_end_no_outage_while_others_wait(make, server, caplog):
    """An edge without Kafka answers 503, but refuses what it refuses anyway."""
    server.answer = in_turn(plain(503), rejecting(400, "too_late"), plain(503), plain(204))
    producer = make(pack_reports=1)
    producer.report("latency", [1] * 3, None)
    producer.flush()
    assert len([each for each in logged(caplog) if each.name == edge_delivery.__name__]) == 2
    server.answer = in_turn(plain(503), rejecting(400, "too_late"))
    producer.report("latency", [1], None)
    producer.flush()
    assert producer.reasons_not_ready() == []


def test_409_is_said_once_and_the_list_is_fetched_anew(
    make, server, caplog, pin_messages: PinMessages
) -> None:
    server.answer = rejecting(409, "unknown_collection")
    producer = make()
    for _ in range(3):
        producer.report("carrier", "AA", None)
        producer.flush()
    (said,) = producer.reasons_not_ready()
    pin_messages({"the edge answers 409": lambda: said})
    assert caplog.messages.count(said) == 1
    assert len(server.uploads()) == 3


def test_too_large_pack_is_kept_and_named(make, server, pin_messages: PinMessages) -> None:
    server.answer = in_turn(plain(413, b"<html>too large</html>"), plain(204))
    producer = make()
    producer.report("latency", [1] * 3, None)
    pin_messages({"the pack is too large": producer.flush})
    producer.report("latency", [2] * 4, None)
    with pytest.raises(DeliveryError, match="60 bytes"):
        producer.flush()
    assert producer.counters().acknowledged == {"latency": 4}
    assert producer.counters().unsendable == 1
    with pytest.raises(DeliveryError, match="60 bytes"):
        producer.close()
    again = make()
    again.flush()
    assert again.counters().packs == 1
    assert len({each.body for each in server.uploads()}) == 2


@pytest.mark.slow
def test_retry_after_is_honoured(make, server):
    server.answer = in_turn(plain(503, Retry_After="1"), plain(204))
    producer = make()
    producer.report("latency", [1], None)
    producer.flush()
    first, second = server.uploads()
    assert 1.0 <= second.at - first.at < 10


@pytest.mark.slow
def test_one_thread_tries_while_the_edge_fails(make, server, monkeypatch):
    """Not all connections at once; then all of them are used."""
    server.answer = plain(503)
    producer = make(timing=replace(QUICK, retry=(0.1,)), pack_reports=1)
    producer.report("latency", [1] * 50, None)
    assert wait_until(lambda: len(server.uploads()) > 8, 30)
    asked = server.uploads()[4:]
    gaps = [later.at - sooner.at for sooner, later in pairwise(asked)]
    assert min(gaps) >= 0.05
    server.answer = lambda handler: (time.sleep(0.02), plain(204)(handler))
    producer.flush()
    assert rows(server)[0] == 50
    assert len({each.connection for each in server.uploads()}) > 1


def test_one_failing_pack_does_not_hold_up_others(make, server):
    producer = make(pack_reports=1)
    poison = []

    def answer(handler):
        body = server.uploads()[-1].body
        if not poison:
            poison.append(body)
        plain(500 if handler.headers["Content-Length"] == str(len(poison[0])) else 204)(handler)

    server.answer = answer
    producer.report("latency", [1], None)
    assert wait_until(lambda: poison, 30)
    producer.report("carrier", ["AA"] * 20, None)
    assert wait_until(lambda: producer.counters().acknowledged == {"carrier": 20}, 30)


@pytest.mark.slow
def test_slow_answer_ends_at_one_deadline(make, server):
    """A byte now and then does not keep an exchange alive."""
    server.answer = in_turn(raw(*[b"HTTP/1.1 2"] + [b"0"] * 100, pause=0.1), plain(204))
    producer = make()
    producer.report("latency", [1], None)
    producer.flush()
    first, second = server.uploads()
    assert 0.4 < second.at - first.at < 5
    assert first.body == second.body


@pytest.mark.slow
def test_closing_does_not_wait_for_a_slow_edge(make, server, tmp_path):
    answers = threading.Event()

    def slow(handler):
        answers.wait(600)
        plain(204)(handler)

    server.answer = slow
    producer = make(timing=replace(QUICK, stall=600.0))
    producer.report("latency", [1, 2], None)
    assert wait_until(lambda: server.uploads(), 30)
    with pytest.raises(DeliveryError, match=str(tmp_path)):
        producer.close(0.1)
    answers.set()
    server.answer = plain(204)
    again = make()
    again.flush()
    assert rows(server) == (2, 2)


@pytest.mark.slow
def test_edge_away_at_the_start(tmp_path, caplog, pin_messages: PinMessages) -> None:
    port = new_port()
    config = ProducerConfig(
        allowances=FREE, edge=EdgeAddress(f"http://127.0.0.1:{port}"), data_dir=tmp_path, timing=QUICK,
        block_milliseconds=60_000,
    )  # fmt: skip
    with Producer(config) as producer:
        assert producer.report("latency", [1] * 7, None).stored == 7
        with pytest.raises(DeliveryError, match=str(port)):
            producer.flush(0.3)
        assert wait_until(lambda: producer.reasons_not_ready() != [])
        reasons = "\n".join(producer.reasons_not_ready()).replace(str(port), "PORT")
        with fake_edge(port) as server:
            producer.flush()
            assert rows(server) == (7, 1)
        assert producer.reasons_not_ready() == []
    pin_messages({"no edge answers": lambda: reasons})
    assert len([each for each in logged(caplog) if each.name == edge_delivery.__name__]) == 2


def test_packs_fit_uploads(make, server):
    """Full packs are cut by bytes, and so are buffers that a producer for Kafka left behind."""
    producer = make(pack_reports=1_000_000)
    producer.report("destination", ["JFK"] * 9000, None)
    producer.report("latency", [1] * 40_000, None)
    producer.flush()
    assert rows(server)[0] == 49_000
    assert 65_000 < max(len(each.body) for each in server.uploads()) <= MAX_UPLOAD_BYTES


def test_buffers_of_a_producer_for_kafka_are_cut(make, server, monkeypatch, tmp_path):
    monkeypatch.setattr(storing_thread, "connect", FakeKafka().connect)
    away = ProducerConfig(
        allowances=FREE, bootstrap_servers="127.0.0.1:1", topic="reports", partitions=4, data_dir=tmp_path,
        pack_seconds=3600, pack_reports=1_000_000, timing=replace(QUICK, end=5.0), block_milliseconds=60_000,
    )  # fmt: skip
    killed = Producer(away)
    assert killed.report("latency", [1] * 100_000, None).stored == 100_000
    killed._pipeline.close()  # as after a kill: nothing is packed
    killed._closing.acquire()
    make().flush()
    assert rows(server)[0] == 100_000
    assert len(server.uploads()) > 3


@pytest.mark.slow
@pytest.mark.parametrize("to_edge", [True, False])
def test_packs_made_for_another_destination_are_kept(
    make, server, monkeypatch, to_edge, pin_messages: PinMessages
) -> None:
    """Kafka may have them: a relay's packs of the same reports would be counted, too. And the other way."""
    kafka_has = FakeKafka()
    monkeypatch.setattr(storing_thread, "connect", kafka_has.connect)
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topic": "reports", "partitions": 4}
    server.answer = plain(503)
    first = make(**{} if not to_edge else {"edge": None, **kafka})
    first.report("latency", [1], None)
    with pytest.raises(DeliveryError, match="1 pack"):
        first.close(0.3)
    server.answer, kafka_has.acknowledges = plain(204), True
    before = len(server.uploads()), len(kafka_has.sent)
    second = make(**{} if to_edge else {"edge": None, **kafka})
    pin_messages({"the pack was made for another destination": lambda: second.flush(10)})
    assert (len(server.uploads()), len(kafka_has.sent)) == before
    assert second.counters().unsendable == 1
    with pytest.raises(DeliveryError, match="pack 1"):
        second.close()
    if not to_edge:
        make().flush()
        assert rows(server)[0] == 1


@pytest.mark.usefixtures("one_dies")
def test_death_of_a_thread_is_reported(make, server, monkeypatch):
    def die(*_):
        raise KeyError("canary")

    monkeypatch.setattr(edge_delivery, "verdict_of", die)
    producer = make()
    producer.report("latency", [1], None)
    with pytest.raises(DeliveryError, match="KeyError"):
        producer.flush(20)
    with pytest.raises(DeliveryError, match="KeyError"):
        producer.close()


@pytest.mark.slow
def test_store_holds_the_bytes_that_are_sent(make, server, tmp_path: Path):
    server.answer = plain(503)
    producer = make()
    producer.report("latency", [1, 2], None)
    with pytest.raises(DeliveryError):
        producer.close(0.3)
    store = Store(tmp_path)
    ((record,),) = store.rows("SELECT record FROM records")
    store.close()
    assert {each.body for each in server.uploads()} == {record}
