"""Addresses of brokers: their form, what may go in clear, and whether a Kafka is there."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.cluster.connection.probe import UnreachableError, probe
from producers.transport.cluster import Cluster


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


def test_closed_port_is_named_with_what_to_do(closed: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        probe(Cluster(closed))
    assert str(caught.value) == (
        f"no Kafka broker answers ({closed}: Connection refused); start one with deniable dev, which "
        "keeps its data, or with deniable broker; or name an existing one in "
        "kafka.bootstrap_servers, or with --bootstrap-servers HOST:PORT"
    )


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_servers_other_than_kafka_are_recognized(answer: bytes) -> None:
    with listening(answer) as address, pytest.raises(UnreachableError) as caught:
        probe(Cluster(address))
    assert f"({address}: the server there is not a Kafka broker without TLS);" in str(caught.value)


def test_silence_is_given_up() -> None:
    began = time.monotonic()
    with listening(None) as address, pytest.raises(UnreachableError) as caught:
        probe(Cluster(address), seconds=0.2)
    assert time.monotonic() - began < 25
    assert f"({address}: no answer within 0.2 s);" in str(caught.value)


def test_the_reason_of_every_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(host: str, *_: object, **__: object) -> None:
        raise socket.gaierror(-2, f"{host} is not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(UnreachableError, match=r"\(a:1: a is not known; \[::1\]:2: ::1 is not known\)"):
        probe(Cluster("a:1,[::1]:2", allow_plaintext=True))


@pytest.mark.broker
def test_a_real_broker_answers(broker: str) -> None:
    probe(Cluster(broker))


@pytest.mark.broker
def test_one_broker_that_answers_is_enough(broker: str, closed: str) -> None:
    probe(Cluster(f"{closed},{broker}"))
