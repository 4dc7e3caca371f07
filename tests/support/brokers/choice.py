"""Which broker the tests run on: the one that is given, else one in a container, else the embedded one."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.brokers.local_image import LOCAL_IMAGE

ENGINE_SECONDS = 5


@dataclass(frozen=True)
class Choice:
    """The chosen broker, and the reason, for the header of a run.

    Parameters
    ----------
    kind : `given`, `docker` or `jars`.
    what : bootstrap servers, an image, or nothing.
    why : in a few words.
    """

    kind: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what} ({self.why})" if self.what else f"{self.kind} ({self.why})"


def images() -> set[str] | None:
    """Names of the images that the Docker engine has; None where no engine answers.

    Asked of Docker's command: its library leaves a socket open where there is no engine.
    """
    command = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ENGINE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(said.stdout.split())


def choose(
    bootstrap_servers: str | None,
    asked: str | None,
    image: str | None,
    images: Callable[[], set[str] | None] = images,
) -> Choice:
    """Choose the given broker, else a container if an engine has an image, else the jars.

    Parameters
    ----------
    bootstrap_servers : of `--bootstrap-servers`; wins over all.
    asked : of `--broker`: `docker`, `jars`, or None, what is there.
    image : of `--kafka-image`: one that the engine may pull; None: only those that it has.
    images : asks for what the engine has; only where it matters.
    """
    if bootstrap_servers:
        return Choice("given", bootstrap_servers, "--bootstrap-servers")
    if asked == "jars":
        return Choice("jars", "", "--broker jars")
    present = images()
    if present is None:
        kind = asked or "jars"
        return Choice(kind, image or LOCAL_IMAGE if kind == "docker" else "", "no Docker engine answers")
    if image:
        return Choice("docker", image, "--kafka-image")
    if LOCAL_IMAGE in present or asked == "docker":
        return Choice("docker", LOCAL_IMAGE, "deploy/broker/kafka/image.sh builds it")
    return Choice("jars", "", f"the Docker engine has no image {LOCAL_IMAGE}, and --kafka-image names none")


@contextmanager
def started(choice: Choice) -> Iterator[str]:
    """Bootstrap servers of the broker that was chosen, until the end of the run."""
    if choice.kind == "given":
        yield choice.what
    elif choice.kind == "docker":
        from tests.support.brokers.containers import broker_in_container

        with broker_in_container(choice.what) as servers:
            yield servers
    else:
        from deploy.broker.broker import Broker  # here, so that fast tests do not load a Kafka client

        with Broker() as embedded:
            yield embedded.bootstrap_servers
