"""Addresses of brokers: their form, what may go in clear, and whether a Kafka is there."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from aiokafka.errors import SaslAuthenticationFailed

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.causes import cause_of
from deniable.cluster.connection.probe import UnreachableError, probe
from deniable.cluster.security import Security
from tests.support.messages import PinMessages


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


def refusal(address: str, seconds: float = 10.0) -> str:
    with pytest.raises(UnreachableError) as caught:
        probe(Cluster(address, allow_plaintext=True), seconds=seconds)
    assert address.split(",")[0] in str(caught.value)
    return str(caught.value).replace(address, "ADDRESS")


def test_closed_port_is_named_with_what_to_do(closed: str, pin_messages: PinMessages) -> None:
    pin_messages({"nothing listens": lambda: refusal(closed)})


def test_a_refused_password_is_checked_where_it_comes_from(pin_messages: PinMessages) -> None:
    sources = {
        "password_file": Path("p"),
        "password_command": ("pass", "show", "kafka"),
        "password": "hunter2",
    }

    def remedy(**source: object) -> str:
        security = Security(username="a", **source)
        return cause_of(SaslAuthenticationFailed(), 2.0, security).remedy

    pin_messages({name: partial(remedy, **{name: source}) for name, source in sources.items()})


@pytest.mark.all
def test_servers_other_than_kafka_are_recognized(pin_messages: PinMessages) -> None:
    answers = {"it hangs up": b"", "it speaks HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n"}
    messages = {}
    for what, answer in answers.items():
        with listening(answer) as address:
            messages[what] = refusal(address)
    pin_messages({what: partial(str, message) for what, message in messages.items()})


@pytest.mark.slow
def test_silence_is_given_up(pin_messages: PinMessages) -> None:
    began = time.monotonic()
    with listening(None) as address:
        message = refusal(address, seconds=0.2)
    assert time.monotonic() - began < 25
    pin_messages({"it does not answer": lambda: message})


def test_the_reason_of_every_address_is_reported(
    monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    def fail(host: str, *_: object, **__: object) -> None:
        raise socket.gaierror(-2, f"{host} is not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    pin_messages({"two names that are not known": lambda: refusal("a:1,[::1]:2")})


@pytest.mark.broker
def test_a_real_broker_answers(broker: str) -> None:
    probe(Cluster(broker))


@pytest.mark.broker
def test_one_broker_that_answers_is_enough(broker: str, closed: str) -> None:
    probe(Cluster(f"{closed},{broker}"))
