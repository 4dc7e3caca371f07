"""A loopback broker that advertises another host: clients do not follow in plaintext unless allowed."""

from pathlib import Path

import pytest

from deniable.cluster.cluster import Cluster
from deniable.deploy.broker.broker import Broker
from deniable.producers.errors import HopelessError
from deniable.producers.transport.connection import connect
from tests.support.deployments import Deployment

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

ELSEWHERE = "LOCALHOST"  # resolves, but is no loopback name that we know


class Advertising(Broker):
    """The embedded broker under another host name."""

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        with (folder / "server.properties").open("a") as settings:
            settings.write(f"advertised.listeners=PLAINTEXT://{ELSEWHERE}:{port}\n")


def test_clients_do_not_follow_elsewhere_in_plaintext(tmp_path: Path, topic_prefix: str) -> None:
    with Advertising() as broker:
        servers = broker.bootstrap_servers
        message = (
            f"Kafka at {servers} sends its clients to another machine ({ELSEWHERE}: its "
            "advertised.listeners) and the connection is not encrypted: give security (TLS), or "
            "allow_plaintext: true if the network between is trusted"
        )
        deployment = Deployment(tmp_path, servers, topic_prefix)
        topic = f"{topic_prefix}reports"
        created = deployment.run("topics", "create")
        assert created.returncode == 0, created.stderr
        connect(Cluster(servers, allow_plaintext=True), topic, 2, 10).close()
        with pytest.raises(HopelessError) as by_producer:
            connect(Cluster(servers), topic, 2, 10)
        assert str(by_producer.value) == message
        file = tmp_path / "deniable.yaml"
        file.write_text(file.read_text().replace("allow_plaintext: true", "allow_plaintext: false"))
        refused = deployment.run("topics", "check")
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"Error: {message}\n")
