"""A real edge with a real Kafka, and a producer's folder beside it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from deniable.config.file import load
from deniable.deploy.broker.child_processes import Child
from deniable.protocol.uploads.frame import decode_frame
from deniable.protocol.uploads.upload import Upload, UploadError, decode_upload
from tests.support.deployments import Deployment
from tests.support.processes import new_port, wait_until
from tests.support.producers.topics import read

PARTITIONS = 2
BEGINNING = b"begun"  # what a relay writes first is no frame


@dataclass(frozen=True)
class EdgeSite:
    """A deployment with the topic `uploads`, and a port for its edge.

    Parameters
    ----------
    deployment : of the edge: its file names Kafka, and has the section `edge`.
    port : of the edge, on loopback.
    """

    deployment: Deployment
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self, log: str = "edge.log") -> Iterator[Child]:
        """Run the edge, and wait until it is ready."""
        address = f"127.0.0.1:{self.port}"
        with self.deployment.running(log, "edge", "--listen", address) as child:
            assert wait_until(self.is_ready, 60), self.deployment.output(log)
            yield child

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/readyz", timeout=10):  # noqa: S310 - on loopback
                return True
        except (URLError, ConnectionError):
            return False

    def uploads(self) -> list[Upload]:
        """All uploads of the topic, repeated ones too; without the reports' bytes being views."""
        found = []
        for record in read(self.deployment.servers, f"{self.deployment.prefix}uploads"):
            try:
                found += [decode_upload(bytes(each)) for each in decode_frame(record.value)]
            except UploadError:
                assert record.value == BEGINNING
        return found

    def counted(self) -> Counter[int]:
        """Reports by fingerprint, each upload counted once, as a relay does."""
        by_id: dict[bytes, Upload] = {}
        for each in self.uploads():
            assert by_id.setdefault(each.upload_id, each) == each, "an id was used for other bytes"
        counted: Counter[int] = Counter()
        for each in by_id.values():
            for group in each.groups:
                counted[group.fingerprint] += group.reports
        return counted


def edge_site(folder: Path, servers: str, prefix: str) -> EdgeSite:
    """Write the file, create `uploads`, and begin it as a relay does."""
    folder.mkdir()
    deployment = Deployment(folder, servers, prefix)
    file = folder / "deniable.yaml"
    _lengthen(file)
    file.write_text("edge: {uploads_per_minute: 0}\n" + file.read_text())
    topic = load(file, environment={}).topics.uploads
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1, "configs": {}}})
    admin.close()
    kafka = KafkaProducer(bootstrap_servers=servers)
    for partition in range(PARTITIONS):
        kafka.send(topic, BEGINNING, partition=partition)
    kafka.close()
    return EdgeSite(deployment, new_port())


def sender_of(site: EdgeSite, folder: Path, **fields: str) -> Deployment:
    """Return the folder of a producer that delivers to the edge and names no Kafka that answers."""
    folder.mkdir()
    sender = Deployment(folder, "127.0.0.1:1", site.deployment.prefix)
    file = folder / "deniable.yaml"
    _lengthen(file)
    given = "".join(f', {name}: "{value}"' for name, value in fields.items())
    producer = f'producer: {{pack_seconds: 0.2, deliver: "{site.url}"{given}}}'
    text = file.read_text().replace("producer: {pack_seconds: 0.2}", producer)
    # As on a machine without Kafka: the section is not there.
    lines = [line for line in text.splitlines() if not line.startswith("kafka:")]
    file.write_text("\n".join(lines) + "\n")
    return sender


def _lengthen(file: Path) -> None:
    """Give windows a grace that is longer than delivery takes."""
    text = file.read_text()
    for old, new in (
        ("window_seconds: 2", "window_seconds: 60"),
        ("grace_seconds: 10", "grace_seconds: 600"),
    ):
        text = text.replace(old, new)
    file.write_text(text)
