"""Choose the broker of the tests: the given one, else one in a container, else the embedded one."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.brokers.local_image import LOCAL_IMAGE

ENGINE_SECONDS = 5


@dataclass(frozen=True)
class Choice:
    """The chosen broker, and the reason, for the header of a run.

    Parameters
    ----------
    kind : `given`, `docker` or `jars`.
    what : bootstrap servers, an image, or nothing.
    why : the reason, in a few words.
    """

    kind: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what} ({self.why})" if self.what else f"{self.kind} ({self.why})"


def images() -> set[str] | None:
    """Return the names of the Docker engine's images; None if no engine answers.

    Uses Docker's command, because its library leaves a socket open without an engine.
    """
    command = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ENGINE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(ended.stdout.split())


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
    asked : of `--broker`: `docker`, `jars`, or None for what is available.
    image : of `--kafka-image`: one that the engine may pull; None: only images that it has.
    images : returns the engine's images; called only if needed.
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


CHOICE = pytest.StashKey[Choice]()


def choice_of(config: pytest.Config) -> Choice:
    """Return the broker that options and installed programs choose, before one is started."""
    return config.stash.setdefault(
        CHOICE, choose(*map(config.getoption, ("--bootstrap-servers", "--broker", "--kafka-image")))
    )


@contextmanager
def started(choice: Choice) -> Iterator[str]:
    """Start the chosen broker until the end of the run; yield its bootstrap servers."""
    if choice.kind == "given":
        yield choice.what
    elif choice.kind == "docker":
        from tests.support.brokers.containers import broker_in_container

        with broker_in_container(choice.what) as servers:
            yield servers
    else:
        from deniable.deploy.broker.broker import (
            Broker,  # here, so that fast tests do not load a Kafka client
        )
        from tests.support.brokers.class_archive import use_class_archive

        use_class_archive()
        with Broker() as embedded:
            yield embedded.bootstrap_servers
