"""A broker on loopback that sends its clients elsewhere: not in clear, unless that is allowed."""

from pathlib import Path

import pytest

from deploy.broker.broker import Broker
from producers.errors import HopelessError
from producers.transport.cluster import Cluster
from producers.transport.connection import connect
from tests.support.deploy.deployments import Deployment

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

ELSEWHERE = "LOCALHOST"  # resolves, and is no name of loopback that we know


class Advertising(Broker):
    """The embedded broker, under another name."""

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        with (folder / "server.properties").open("a") as settings:
            settings.write(f"advertised.listeners=PLAINTEXT://{ELSEWHERE}:{port}\n")


def test_nothing_follows_a_broker_to_another_machine_in_clear(tmp_path: Path, topic_prefix: str) -> None:
    with Advertising() as broker:
        servers = broker.bootstrap_servers
        said = (
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
        assert str(by_producer.value) == said
        file = tmp_path / "deniable.yaml"
        file.write_text(file.read_text().replace("allow_plaintext: true", "allow_plaintext: false"))
        refused = deployment.run("topics", "check")
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"Error: {said}\n")
