"""Passwords and certificates are replaced while a producer and a worker run: no report is lost."""

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from deniable.config.file import load
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from deniable.protocol.marker import is_marker
from deniable.protocol.wire import decode
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment, by_certificate, by_password
from tests.support.processes import wait_until

pytestmark = [
    pytest.mark.all,
    pytest.mark.broker,
    pytest.mark.usefixtures("kafka_jars"),
    # kafka-python leaves refused sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SESSION_SECONDS = 3
# Lifetime of the replaced certificate: long enough for a worker to start on a busy machine.
SHORT, STARTS = timedelta(seconds=12), 5
SILENCE_SECONDS = 30.0  # as documented, once the broker is back


class Traffic:
    """A producer with a steady flow of reports, and a worker that counts them."""

    def __init__(self, deployment: SecuredDeployment) -> None:
        file = deployment.folder / "deniable.yaml"
        # Reports that wait a minute still count.
        text, short = file.read_text(), "grace_seconds: 10,"
        assert short in text
        file.write_text(text.replace(short, "grace_seconds: 300,"))
        self.deployment = deployment
        self._config = load(file, environment={})
        self._producer = Producer(producer_config(self._config))
        self._ended = threading.Event()
        self._sending = threading.Thread(target=self._send)

    @contextmanager
    def flowing(self) -> Iterator["Traffic"]:
        with self.deployment.running("worker.log", "aggregate", "--web-port", "0") as self._worker:
            self._sending.start()
            try:
                self.wait_for_acknowledgements()
                self.deployment.wait_until_ready("worker.log")
                yield self
            finally:
                self._ended.set()
                self._sending.join()
                self._producer.close()

    @property
    def acknowledged(self) -> int:
        return self._producer.counters().acknowledged.get("carrier", 0)

    def wait_for_acknowledgements(self) -> None:
        """A report submitted now is acknowledged before long."""
        goal = self._producer.counters().stored.get("carrier", 0) + 1
        began = time.monotonic()
        assert wait_until(lambda: self.acknowledged >= goal, SILENCE_SECONDS), "silence"
        print(f"acknowledged after {time.monotonic() - began:.1f} s")  # noqa: T201 - shown with -s

    def wait_for_silence(self) -> None:
        """No report is acknowledged any more, though reports are submitted."""
        deadline = time.monotonic() + 120
        before = -1
        while before != self.acknowledged:
            assert time.monotonic() < deadline, "it still goes through"
            before = self.acknowledged
            self._ended.wait(1.5)

    def assert_nothing_is_lost(self) -> None:
        """All stored reports are acknowledged once and counted once."""
        self._ended.set()
        self._sending.join()
        self._producer.flush(SILENCE_SECONDS)
        counters = self._producer.counters()
        assert counters.acknowledged == counters.stored == {"carrier": self._handed_over}
        assert (counters.dropped, counters.expired, counters.unsendable) == ({}, {}, 0)
        assert self._worker.poll() is None, self.deployment.output("worker.log")
        assert sum(self._reports_by_pack().values()) == self._handed_over
        replayed = self.deployment.run("replay")
        assert (replayed.returncode, replayed.stdout) == (0, "difference: 0\n"), replayed.stderr

    def _reports_by_pack(self) -> dict[bytes, int]:
        """Reports in the log; a pack that occurs twice counts once, as in workers."""
        found: dict[bytes, int] = {}
        topic = self._config.topics.reports
        sources = [TopicPartition(topic, number) for number in range(self._config.topics.partitions)]
        with closing(KafkaConsumer(**self._config.cluster.client_settings())) as consumer:
            consumer.assign(sources)
            consumer.seek_to_beginning(*sources)
            ends = consumer.end_offsets(sources)
            deadline = time.monotonic() + 30
            while any(consumer.position(each) < ends[each] for each in sources):
                assert time.monotonic() < deadline, "the topic could not be read to its end"
                for record in chain.from_iterable(consumer.poll(timeout_ms=200).values()):
                    if not is_marker(record.value):
                        pack = decode(record.value)
                        found[pack.pack_id] = pack.reports
        return found

    def _send(self) -> None:
        self._handed_over = 0
        while not self._ended.wait(0.05):
            self._producer.report("carrier", ["AA", "B6", "9E"], None)
            self._handed_over += 3


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage here, where warnings are expected, and not in another test."""
    yield
    caplog.get_records("call").clear()  # they hold sockets
    gc.collect()


@pytest.fixture(scope="module")
def own_broker() -> Iterator[SecuredBroker]:
    """A broker for these tests alone that re-authenticates every few seconds."""
    reauthentication = {"connections.max.reauth.ms": SESSION_SECONDS * 1000}
    with SecuredBroker(reauthentication) as broker:
        yield broker


@pytest.mark.nightly
def test_password_is_replaced(own_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> None:
    """While the broker has the new password and the file has the old one, reports wait; then all arrive."""
    first = own_broker.change_password(ADMIN)
    deployment = by_password(own_broker, tmp_path, topic_prefix)
    deployment.create_topics()
    with Traffic(deployment).flowing() as traffic:
        second = own_broker.change_password(ADMIN)
        traffic.wait_for_silence()
        deployment.write("password", f"{second}\n".encode())
        traffic.wait_for_acknowledgements()
        traffic.assert_nothing_is_lost()
    output = deployment.output("worker.log")
    assert first not in output
    assert second not in output


@pytest.mark.nightly
def test_certificates_of_client_and_broker_are_replaced(
    own_broker: SecuredBroker, tmp_path: Path, topic_prefix: str
) -> None:
    """Ours before the old one expires; the broker's by one of another authority, once both are trusted."""
    deployment = by_certificate(own_broker, tmp_path, topic_prefix)
    began = datetime.now(UTC)
    deployment.create_topics()
    now = datetime.now(UTC)
    expires = now + max(SHORT, STARTS * (now - began))
    deployment.use_certificate(own_broker.authority.issue(ADMIN, client=True, not_after=expires))
    with Traffic(deployment).flowing() as traffic:
        deployment.use_certificate(own_broker.client_certificate(ADMIN))
        authorities = (own_broker.authority, own_broker.stranger)
        deployment.write("ca.crt", b"".join(each.certificate_file.read_bytes() for each in authorities))
        assert wait_until(lambda: datetime.now(UTC) > expires, 120)
        own_broker.replace_broker_certificate(own_broker.stranger.issue("broker", server=True))
        own_broker.restart()
        traffic.wait_for_acknowledgements()
        deployment.write("ca.crt", own_broker.stranger.certificate_file.read_bytes())
        checked = deployment.run("topics", "check")
        assert checked.returncode == 0, checked.stderr
        traffic.assert_nothing_is_lost()
