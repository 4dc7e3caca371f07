"""An edge over real sockets, Kafka in memory: pipelines, slow, cut, enormous requests, limits, the end."""

import json
import os
import select
import threading
import time

import pytest

from deniable.edge import server
from deniable.edge.sending import upload_writer
from deniable.edge.web import connection
from tests.support.edge.served import served
from tests.support.edge.uploads import group, post, upload
from tests.support.processes import wait_until

GET_LIST = b"GET /v1/collections HTTP/1.1\r\nHost: edge.example\r\n\r\n"


@pytest.fixture(scope="module")
def edge():
    with served() as found:
        yield found


@pytest.fixture
def fast(monkeypatch):
    """Times of a test instead of seconds."""
    for name, seconds in {"REQUEST_SECONDS": 0.6, "IDLE_SECONDS": 1.2, "LINGER_SECONDS": 0.3}.items():
        monkeypatch.setattr(connection, name, seconds)


def test_upload_is_answered_once_kafka_has_it(edge):
    body = upload()
    status, headers, answer = edge.ask(post(body))
    assert (status, answer) == (204, b"")
    assert headers["cache-control"] == "no-store"
    assert "content-length" not in headers
    assert "set-cookie" not in headers
    assert body in edge.edge.kafka.uploads()


@pytest.mark.slow
def test_upload_waits_for_the_acknowledgement(edge):
    kafka = edge.edge.kafka
    edge.call(kafka.gate.clear)
    try:
        with edge.connect() as client:
            client.send(post(upload()))
            client.connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.answer()
            edge.call(kafka.gate.set)
            client.connection.settimeout(10)
            assert client.answer()[0] == 204
    finally:
        edge.call(kafka.gate.set)


def test_partly_bad_upload_is_written_without_its_bad_groups(edge):
    upload_id = os.urandom(16)
    good = group()
    body = upload(group(fingerprint=1), good, upload_id=upload_id)
    status, _, answer = edge.ask(post(body))
    assert (status, json.loads(answer)) == (200, {"rejected": [[0, "unknown_collection"]]})
    assert upload(good, upload_id=upload_id) in edge.edge.kafka.uploads()


def test_pipelined_requests_are_answered_in_their_order(edge):
    """Also behind an upload that waits for Kafka, and across any cut of the bytes."""
    kafka = edge.edge.kafka
    bodies = [upload() for _ in range(3)]
    sent = (
        post(bodies[0])
        + GET_LIST
        + post(b"x")
        + post(bodies[1])
        + b"PUT / HTTP/1.1\r\n\r\n"
        + post(bodies[2])
    )
    edge.call(kafka.gate.clear)
    with edge.connect() as client:
        for start in range(0, len(sent), 37):
            client.send(sent[start : start + 37])
        edge.call(kafka.gate.set)
        assert [client.answer()[0] for _ in range(6)] == [204, 200, 400, 204, 404, 204]
    assert set(bodies) <= set(kafka.uploads())


def test_more_requests_than_may_wait_are_all_answered(edge):
    kafka = edge.edge.kafka
    edge.call(kafka.gate.clear)
    number = 20 * connection.MOST_WAITING
    with edge.connect() as client:
        sender = threading.Thread(target=client.send, args=(b"".join(post(upload()) for _ in range(number)),))
        sender.start()
        edge.call(kafka.gate.set)
        assert [client.answer()[0] for _ in range(number)] == [204] * number
        sender.join()


def test_refused_requests_keep_the_connection(edge):
    """Their bodies are read and dropped."""
    with edge.connect() as client:
        for request in (
            post(b"x" * 60_000, content_type="application/json"),
            post(upload(), ["Origin: https://other.example"]),
            post(upload(), target="/v1/other"),
            post(upload(), ["Content-Encoding: gzip"]),
            post(upload()),
        ):
            client.send(request)
        assert [client.answer()[0] for _ in range(5)] == [415, 403, 404, 415, 204]


def test_cross_origin_answers(edge):
    listed = ["Origin: https://shop.example"]
    for request in (
        post(upload(), listed),
        post(b"x", listed),
        post(upload(), [*listed, "Expect: 100-continue"]),
    ):
        with edge.connect() as client:
            client.send(request)
            status, headers, _ = client.answer()
            if status == 100:
                status, headers, _ = client.answer()
        assert headers["access-control-allow-origin"] == "https://shop.example"
        assert headers["access-control-expose-headers"] == "ETag, Retry-After"
        assert headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in edge.ask(post(upload(), ["Origin: https://a.example"]))[1]
    preflight = b"OPTIONS /v1/reports HTTP/1.1\r\nOrigin: https://shop.example\r\n\r\n"
    status, headers, _ = edge.ask(preflight)
    assert (status, headers["access-control-max-age"]) == (204, "86400")


def test_head_has_the_length_and_no_body(edge):
    with edge.connect() as client:
        client.send(GET_LIST.replace(b"GET", b"HEAD") + GET_LIST)
        status, headers, _ = client.answer(is_head=True)
        assert (status, int(headers["content-length"])) == (200, len(client.answer()[2]))


def test_client_that_waits_to_send_its_body(edge):
    head, _, body = post(upload(), ["Expect: 100-continue"]).partition(b"\r\n\r\n")
    with edge.connect() as client:
        client.send(head + b"\r\n\r\n")
        assert client.answer()[0] == 100
        client.send(body)
        assert client.answer()[0] == 204
    with edge.connect() as client:
        client.send(head.replace(b"vnd.deniable", b"x") + b"\r\n\r\n")
        assert client.answer()[0] == 415
        assert client.is_closed()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS to a plain port
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA B: c\r\n\r\n", 400),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n", 411),
        (b"POST /v1/reports HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 411),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (b"POST /v1/reports HTTP/1.1\r\nContent-Length: 999999999999999999\r\n\r\n", 413),
        (b"PUT /x HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nCookie: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % each for each in range(1000)) + b"\r\n", 431),
    ],
)
def test_broken_and_enormous_heads_end_the_connection(edge, request_, status):
    with edge.connect() as client:
        client.send(request_)
        answered, headers, body = client.answer()
        assert (answered, headers["connection"]) == (status, "close")
        assert json.loads(body)["error"]
        assert client.is_closed()


def test_head_that_never_ends_is_refused_while_it_comes(edge):
    with edge.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(40):
            if select.select([client.connection], [], [], 0.005)[0]:
                break
            client.send(b"a" * 1000)
        assert client.answer()[0] == 431


@pytest.mark.parametrize("sent", [b"X: " + b"a" * 9000, b"X-Canary: 1\r\n" * 2000])
def test_unfinished_enormous_head_that_comes_at_once_is_refused_at_once(edge, sent):
    with edge.connect() as client:
        client.send(b"GET / HTTP/1.1\r\n" + sent)
        assert client.answer()[0] == 431


def test_enormous_body_is_not_read(edge):
    """The answer comes before the body, and is not destroyed by the bytes that follow."""
    with edge.connect() as client:
        client.send(b"POST /v1/reports HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
        sent = 0
        try:
            for _ in range(100):
                client.send(b"x" * 65536)
                sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert client.answer()[0] == 413


@pytest.mark.slow
def test_slow_request_is_timed_out(edge, fast):
    began = time.monotonic()
    with edge.connect() as client:
        client.send(post(upload())[:-10])
        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (408, "close")
    assert time.monotonic() - began > 0.5
    with edge.connect() as client:  # byte by byte is no better
        began = time.monotonic()
        for byte in post(upload())[:-10]:
            client.send(bytes([byte]))
            is_answered, _, _ = select.select([client.connection], [], [], 0.01)
            if is_answered:
                break
        assert client.answer()[0] == 408
        assert time.monotonic() - began > 0.5


@pytest.mark.slow
def test_endless_pipeline_is_no_slow_request(edge, fast):
    """Each chunk ends within a request, for longer than one may take; a chunk exceeds a head's limit."""
    whole = GET_LIST * 400
    began, chunk = time.monotonic(), whole + GET_LIST[:20]
    with edge.connect() as client:
        while time.monotonic() - began < 1.5:
            client.send(chunk)
            assert {client.answer()[0] for _ in range(400)} == {200}
            chunk = GET_LIST[20:] + whole[: -len(GET_LIST)] + GET_LIST[:20]
            time.sleep(0.02)


@pytest.mark.slow
def test_idle_connections_are_closed_without_an_answer(edge, fast):
    began = time.monotonic()
    with edge.connect() as silent, edge.connect() as idle:
        idle.send(post(upload()))
        assert idle.answer()[0] == 204
        assert silent.is_closed()
        assert time.monotonic() - began > 0.5
        assert idle.is_closed()
        assert time.monotonic() - began > 1.1


def test_cut_requests_leave_nothing(edge):
    before = edge.edge.counters.uploads
    request = post(upload())
    for length in range(1, len(request), 9):
        with edge.connect() as client:
            client.send(request[:length])
    assert wait_until(lambda: edge.edge.counters.connections == 0)
    assert edge.edge.counters.uploads == before


@pytest.mark.slow
def test_client_that_leaves_before_the_answer_is_written_all_the_same(edge):
    body = upload()
    edge.call(edge.edge.kafka.gate.clear)
    with edge.connect() as client:
        client.send(post(body))
        time.sleep(0.2)
    edge.call(edge.edge.kafka.gate.set)
    assert wait_until(lambda: body in edge.edge.kafka.uploads())


def test_half_closed_client_gets_its_answers(edge):
    with edge.connect() as client:
        client.send(post(upload()) + post(upload()))
        client.connection.shutdown(1)
        assert [client.answer()[0], client.answer()[0]] == [204, 204]
        assert client.is_closed()


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_client_that_wants_no_further_request(edge, version):
    request = post(upload()).replace(b"HTTP/1.1", b"HTTP/" + version)
    if version == b"1.1":
        request = request.replace(b"Host:", b"Connection: close\r\nHost:")
    with edge.connect() as client:
        client.send(request)
        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (204, "close")
        assert client.is_closed()


@pytest.mark.slow
def test_upgrade_is_not_followed(edge):
    upgrade = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]
    request = post(upload(), upgrade)
    for cut in (0, 20, len(request) - 5, len(request)):
        with edge.connect() as client:
            client.send(request[:cut])
            time.sleep(0.05)
            client.send(request[cut:])
            status, headers, _ = client.answer()
            assert (status, headers["connection"]) == (204, "close")
    status, headers, _ = edge.ask(GET_LIST[:-2] + "\r\n".join([*upgrade, "", ""]).encode())
    assert (status, headers["connection"]) == (200, "close")


def test_too_many_connections_are_refused(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with served() as edge:
        with edge.connect() as first, edge.connect() as second:
            for client in (first, second):
                client.send(GET_LIST)
                assert client.answer()[0] == 200
            with edge.connect() as third:
                status, headers, _ = third.answer()
                assert (status, headers["connection"], headers["retry-after"]) == (503, "close", "5")
                assert third.is_closed()
            first.send(GET_LIST)
            assert first.answer()[0] == 200
            assert edge.edge.counters.connections_refused == 1
        assert wait_until(lambda: edge.edge.counters.connections == 0)
        assert edge.ask(GET_LIST)[0] == 200


@pytest.mark.slow
def test_client_that_reads_nothing_is_cut(edge, fast, monkeypatch):
    monkeypatch.setattr(connection, "UNREAD_SECONDS", 0.5)
    with edge.connect() as client:
        client.connection.settimeout(5)
        with pytest.raises((ConnectionError, TimeoutError)):
            client.send(GET_LIST * 2_000_000)
        assert wait_until(lambda: edge.edge.counters.connections == 0)


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_mixes_of_invalid_uploads(edge, share):
    """Good ones are taken whatever comes between them."""
    number, kafka = 200, edge.edge.kafka
    bad = [b"x" * 50, upload(group(fingerprint=9)), upload(group(rows=b"\x09")), upload()[:-1]]
    good = [upload() for _ in range(round(number * (1 - share)))]
    with edge.connect() as client:
        statuses = []
        for index in range(number):
            is_bad = int(index * share) != int((index + 1) * share)
            body = bad[index % len(bad)] if is_bad else good.pop()
            client.send(post(body))
            statuses.append((client.answer()[0], is_bad, body))
    assert {status for status, is_bad, _ in statuses if not is_bad} <= {204}
    assert {status for status, is_bad, _ in statuses if is_bad} <= {400, 409}
    written = set(kafka.uploads())
    assert all((body in written) == (not is_bad) for _, is_bad, body in statuses)


@pytest.mark.slow
def test_full_queue_is_answered_at_once(edge, monkeypatch):
    monkeypatch.setattr(upload_writer, "QUEUE_BYTES", 2000)
    edge.call(edge.edge.kafka.gate.clear)
    clients = [edge.connect() for _ in range(8)]
    for client in clients:
        client.send(post(upload()))
    assert wait_until(lambda: edge.edge.counters.queue_bytes > 2000)
    status, headers, body = edge.ask(post(upload()))
    assert (status, headers["retry-after"]) == (503, "5")
    assert json.loads(body)["error"].startswith("the queue of uploads is full")
    edge.call(edge.edge.kafka.gate.set)
    assert {client.answer()[0] for client in clients} == {204, 503}
    for client in clients:
        client.connection.close()


@pytest.mark.slow
def test_stop_answers_what_is_in_flight():
    with served() as edge:
        kafka = edge.edge.kafka
        edge.call(kafka.gate.clear)
        with edge.connect() as waiting, edge.connect() as idle:
            idle.send(GET_LIST)
            idle.answer()
            body = upload()
            waiting.send(post(body))
            assert wait_until(lambda: kafka.in_flight > 0)
            stopping = threading.Thread(target=edge.wait, args=(edge.edge.stop(5.0),))
            stopping.start()
            assert idle.is_closed()
            with pytest.raises(ConnectionRefusedError):
                edge.connect()
            edge.call(kafka.gate.set)
            status, headers, _ = waiting.answer()
            assert (status, headers["connection"]) == (204, "close")
            assert body in kafka.uploads()
        stopping.join(10)


def test_probes_and_metrics(edge):
    assert json.loads(edge.ask(b"GET /healthz HTTP/1.1\r\n\r\n")[2]) == {"healthy": True}
    assert json.loads(edge.ask(b"GET /readyz HTTP/1.1\r\n\r\n")[2]) == {"ready": True, "reasons": []}
    edge.ask(post(upload(group(fingerprint=1), group())))
    text = edge.ask(b"GET /metrics HTTP/1.1\r\n\r\n")[2].decode()
    assert 'deniable_edge_requests_total{path="reports",status="200"}' in text
    assert 'deniable_edge_groups_rejected_total{reason="too_late"} 0.0' in text
    assert edge.edge.counters.rejected["unknown_collection"] >= 1
    assert edge.edge.counters.uploads == len(edge.edge.kafka.uploads())


def test_try_page_only_when_asked_for(edge, tmp_path):
    assert edge.ask(b"GET /try HTTP/1.1\r\n\r\n")[0] == 404
    page = tmp_path / "index.html"
    page.write_text("<!doctype html>")
    with served(try_files={b"/try": ("text/html; charset=utf-8", page)}) as trying:
        status, headers, body = trying.ask(b"GET /try HTTP/1.1\r\n\r\n")
        assert (status, body) == (200, b"<!doctype html>")
        assert "default-src 'none'" in headers["content-security-policy"]
        assert trying.ask(b"GET /try/../server.py HTTP/1.1\r\n\r\n")[0] == 404


def test_repeated_head_is_answered_like_the_first_one(edge):
    """With other bodies, cut anywhere, followed by another head of the same length, or by a longer one."""
    bodies = [upload() for _ in range(12)]
    with edge.connect() as client:
        for body in bodies[:6]:
            client.send(post(body))
            assert client.answer()[0] == 204
        client.send(post(b"x" * len(bodies[0])))
        assert client.answer()[0] == 400
        for body, cut in zip(bodies[6:], (10, 100, len(post(bodies[0])) - 3), strict=False):
            request = post(body)
            client.send(request[:cut])
            time.sleep(0.05)
            client.send(request[cut:])
            assert client.answer()[0] == 204
        client.send(post(bodies[9]) + post(bodies[10]))
        assert [client.answer()[0], client.answer()[0]] == [204, 204]
        client.send(post(bodies[11], ["Origin: https://other.example"]))
        assert client.answer()[0] == 403
        client.send(post(bodies[11]))
        assert client.answer()[0] == 204
    assert set(bodies) <= set(edge.edge.kafka.uploads())


def test_line_ends_after_a_body_do_not_matter(edge):
    """RFC 9112, section 2.2: some clients end a body with one; it belongs to no request."""
    with edge.connect() as client:
        for _ in range(3):
            client.send(post(upload()) + b"\r\n")
            assert client.answer()[0] == 204


def test_repeated_head_after_another_request(edge):
    """What came between decides nothing: a GET, an upload of a listed origin, one that is refused."""
    listed, other = ["Origin: https://shop.example"], ["Origin: https://other.example"]
    wrong = post(upload(), listed, content_type="text/html")
    with edge.connect() as client:
        for between in (
            wrong,
            GET_LIST,
            post(upload(), listed),
            post(upload(), other),
            post(b"x"),
            post(upload()) * 2,
        ):
            body = upload()
            client.send(post(upload()))
            assert client.answer()[0] == 204
            client.send(between)
            client.answer()
            if between.count(b"HTTP/1.1") == 2:
                client.answer()
            client.send(post(body))
            status, headers, answer = client.answer()
            assert (status, answer) == (204, b"")
            assert "access-control-allow-origin" not in headers
            assert body in edge.edge.kafka.uploads()


@pytest.mark.slow
def test_rate_limit_counts_repeated_heads():
    with served(uploads_per_minute=5) as edge, edge.connect() as client:
        statuses = []
        for _ in range(7):
            client.send(post(upload()))
            statuses.append(client.answer()[0])
        assert statuses == [204] * 5 + [429] * 2
