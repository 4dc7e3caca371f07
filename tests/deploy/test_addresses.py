"""Addresses of brokers: their form, what may go in clear, and whether a Kafka is there."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy import addresses
from deploy.addresses import UnreachableError, check_addresses, probe


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """A server that answers whoever connects with these bytes and hangs up; None: it never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        done = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer or b"")
                if answer is None:
                    done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        done.set()
        thread.join()


@pytest.fixture
def closed() -> Iterator[str]:
    """An address where nothing listens, kept from others."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    "servers", ["127.0.0.1:9092", "localhost:1", "127.8.8.8:65535", "[::1]:9092", "127.0.0.1:1,[::1]:2"]
)
def test_loopback_needs_no_permission(servers: str) -> None:
    check_addresses(servers, allow_plaintext=False)


@pytest.mark.parametrize("host", ["kafka", "10.0.0.1", "[2001:db8::1]", "localhost.example"])
def test_another_machine_needs_permission(host: str) -> None:
    check_addresses(f"{host}:9092", allow_plaintext=True)
    with pytest.raises(ValueError, match="and the connection is not encrypted") as caught:
        check_addresses(f"localhost:1,{host}:9092", allow_plaintext=False)
    assert str(caught.value) == (
        f"kafka.bootstrap_servers is another machine ({host.strip('[]')}) and the connection is not "
        "encrypted; set kafka.allow_plaintext: true if the network between is trusted"
    )


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost", ":9092", "localhost:", "localhost:0", "localhost:65536", "localhost:-1"),
        *("localhost:١", "::1:9092", "http://localhost:9092", " localhost:9092", "local host:9092"),
        *("a..b:9092", f"{'a' * 64}:9092"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must be HOST:PORT") as caught:
        check_addresses(f"localhost:1,{address}", allow_plaintext=True)
    assert str(caught.value) == (
        f"kafka.bootstrap_servers must be HOST:PORT with a port in [1, 65535], got '{address}'"
    )


def test_a_closed_port_is_named_with_what_to_do(closed: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        probe(closed)
    assert str(caught.value) == (
        f"no Kafka broker answers ({closed}: Connection refused); start one with deniable broker, "
        "or name an existing one with --bootstrap-servers HOST:PORT"
    )


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_is_no_kafka_is_told_apart(answer: bytes) -> None:
    with listening(answer) as address, pytest.raises(UnreachableError) as caught:
        probe(address)
    assert f"({address}: what listens there is no Kafka broker without TLS);" in str(caught.value)


def test_silence_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "PROBE_SECONDS", 0.2)
    began = time.monotonic()
    with listening(None) as address, pytest.raises(UnreachableError) as caught:
        probe(address)
    assert time.monotonic() - began < 5
    assert f"({address}: no answer within 0 s);" in str(caught.value)


def test_the_reason_of_every_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: tuple[str, int], timeout: float) -> None:
        raise socket.gaierror(-2, f"{address[0]} is not known")

    monkeypatch.setattr(socket, "create_connection", fail)
    with pytest.raises(UnreachableError, match=r"\(a:1: a is not known; \[::1\]:2: ::1 is not known\)"):
        probe("a:1,[::1]:2")


def test_one_broker_that_answers_is_enough(closed: str) -> None:
    answer = (6).to_bytes(4, "big") + addresses.QUESTION[8:12] + b"\0\0"
    with listening(answer) as address:
        probe(f"{closed},{address}")


@pytest.mark.broker
def test_a_real_broker_answers(broker: str) -> None:
    probe(broker)
