"""Connecting to a silent broker times out, and a connection without answers is dropped."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deniable.cluster import security
from deniable.cluster.cluster import Cluster
from deniable.cluster.security import Security
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.connection import connect
from deniable.producers.transport.packs import OutgoingPack
from deniable.producers.transport.sender import Delivery
from tests.support.brokers.log_lines import logged
from tests.support.brokers.secured.certificates import Authority
from tests.support.producers.fake_kafka import FakeKafka

pytestmark = pytest.mark.slow


class Silent:
    """Accepts connections and never answers, with or without a TLS handshake, or closes after it."""

    def __init__(self, listening: socket.socket, context: ssl.SSLContext | None, *, hangs_up: bool) -> None:
        self._listening, self._context, self._hangs_up = listening, context, hangs_up
        self.address = f"127.0.0.1:{listening.getsockname()[1]}"
        self.taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # until it is shut down
            while True:
                connection, _ = self._listening.accept()
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                self.taken.append(connection)
                if self._hangs_up:
                    connection.close()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in self.taken:
            each.close()
        self._listening.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority("authority", tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["before TLS", "after TLS", "hanging up before TLS", "hanging up after TLS"])
def silent(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Silent]:
    issued = authority.issue("broker", server=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate_file, issued.key_file)
    server = Silent(
        socket.create_server(("127.0.0.1", 0)),
        context if "after" in request.param else None,
        hangs_up="hanging" in request.param,
    )
    yield server
    server.stop()


def test_connection_attempt_times_out(
    silent: Silent, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "HANDSHAKE_SECONDS", 1.0)
    secured = Cluster(silent.address, Security(ca_file=authority.certificate_file))
    began = time.monotonic()
    with pytest.raises(DeliveryError, match=silent.address):
        connect(secured, "reports", 1, 1.0)
    assert time.monotonic() - began < 5
    assert silent.taken


def test_connection_without_acknowledgements_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = FakeKafka(), FakeKafka(acknowledges=True)
    left = [first, second]
    woken = threading.Event()
    timing = ProducerTiming(stall=0.4, retry=(0.01,))
    delivery = Delivery(
        lambda: left.pop(0),  # type: ignore[arg-type, return-value] # fakes
        "reports",
        woken.set,
        timing=timing,
    )
    delivery.start()
    packs = [OutgoingPack(number, 0, 5, 60, 3, b"record") for number in range(3)]
    began = time.monotonic()
    delivery.send(packs)
    lost: set[int] = set()
    while lost != {0, 1, 2}:
        assert woken.wait(120), "nothing is given up"
        woken.clear()
        lost |= delivery.outcome().lost
    assert 0.4 <= time.monotonic() - began < 5
    assert (first.closed, len(first.sent)) == (1, 3)
    assert [each.levelno for each in logged(caplog)] == [logging.WARNING]
    delivery.send(packs)
    acknowledged: set[int] = set()
    while acknowledged != {0, 1, 2}:
        assert woken.wait(120), "the second connection is not used"
        woken.clear()
        acknowledged |= set(delivery.outcome().acknowledged)
    assert delivery.trouble is None
    delivery.close()
