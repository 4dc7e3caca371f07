"""A broker in a container, by testcontainers: the local image, Apache's or Confluent's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from deniable.deploy.broker.process import SETTINGS, cluster_id_at
from tests.support.brokers.local_image import LOCAL_IMAGE
from tests.support.processes import new_port

START_SECONDS = 90.0
OWN_OF_IMAGES = ("listener", "controller", "advertised", "inter.broker", "node.id", "log.dirs")


@contextmanager
def broker_in_container(image: str) -> Iterator[str]:
    """Start a broker in a container, removed at the end; yield its bootstrap servers.

    A container that ends, or does not answer within 90 s, is an error, not a reason to skip.
    """
    # Testcontainers' cleanup after a killed run needs another image, which cannot always be pulled.
    testcontainers_config.ryuk_disabled = True
    with _container(image, port := new_port()) as container:
        if isinstance(container, KafkaContainer):
            port = container.get_exposed_port(container.port)
        _wait_until_it_answers(container, port)
        yield f"127.0.0.1:{port}"


def _container(image: str, port: int) -> DockerContainer:
    if image == LOCAL_IMAGE:  # on the host's network: the engine may have no other
        ports = {"PORT": str(port), "CONTROLLER_PORT": str(new_port())}
        return DockerContainer(image).with_kwargs(network_mode="host").with_envs(**ports)
    if image.partition(":")[0].endswith("cp-kafka"):
        return KafkaContainer(image).with_kraft().with_envs(**_variables())
    return (
        DockerContainer(image)
        .with_bind_ports(9092, ("127.0.0.1", port))
        .with_envs(
            **_variables(),
            KAFKA_PROCESS_ROLES="broker,controller",
            KAFKA_NODE_ID="1",
            KAFKA_CONTROLLER_QUORUM_VOTERS="1@localhost:9093",
            KAFKA_LISTENERS="PLAINTEXT://:9092,CONTROLLER://:9093",
            KAFKA_ADVERTISED_LISTENERS=f"PLAINTEXT://127.0.0.1:{port}",
            KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        )
    )


def _variables() -> dict[str, str]:
    """Return the settings of the embedded broker, except addresses, as environment variables of images."""
    lines = (SETTINGS / "server.properties").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {
        f"KAFKA_{name.replace('.', '_').upper()}": value
        for name, value in settings.items()
        if not name.startswith((*OWN_OF_IMAGES, "process"))
    }


def _wait_until_it_answers(container: DockerContainer, port: int) -> None:
    wrapped = container.get_wrapped_container()
    deadline = time.monotonic() + START_SECONDS
    while cluster_id_at(port) is None:
        wrapped.reload()
        if wrapped.status == "exited" or time.monotonic() > deadline:
            last_log = wrapped.logs(tail=20).decode(errors="replace")
            raise RuntimeError(
                f"the broker in {container.image} did not come up; its last lines:\n{last_log}"
            )
        time.sleep(0.1)
