"""The choice of the broker: a given one, else a container if there is an image, else the jars."""

from collections.abc import Callable

import pytest

from tests.support.brokers.choice import choose, images, started
from tests.support.brokers.local_image import LOCAL_IMAGE

APACHE = "apache/kafka:4.3.1"


def no_engine() -> None:
    return None


def engine(*present: str) -> Callable[[], set[str]]:
    return lambda: set(present)


def never() -> set[str]:
    raise AssertionError("the engine need not be asked")


@pytest.mark.parametrize(
    ("given", "asked", "image", "present", "chosen"),
    [
        ("h:1", None, None, never, "given h:1 (--bootstrap-servers)"),
        ("h:1", "docker", APACHE, never, "given h:1 (--bootstrap-servers)"),
        (None, "jars", APACHE, never, "jars (--broker jars)"),
        (None, None, None, no_engine, "jars (no Docker engine answers)"),
        (None, None, APACHE, no_engine, "jars (no Docker engine answers)"),
        (None, "docker", None, no_engine, f"docker {LOCAL_IMAGE} (no Docker engine answers)"),
        (None, "docker", APACHE, no_engine, f"docker {APACHE} (no Docker engine answers)"),
        (
            None,
            None,
            None,
            engine(LOCAL_IMAGE),
            f"docker {LOCAL_IMAGE} (deploy/broker/kafka/image.sh builds it)",
        ),
        (None, "docker", None, engine(), f"docker {LOCAL_IMAGE} (deploy/broker/kafka/image.sh builds it)"),
        (None, None, APACHE, engine(LOCAL_IMAGE), f"docker {APACHE} (--kafka-image)"),
        (
            None,
            None,
            None,
            engine(APACHE),
            f"jars (the Docker engine has no image {LOCAL_IMAGE}, and --kafka-image names none)",
        ),
    ],
)
def test_choice_of_broker(
    given: str | None,
    asked: str | None,
    image: str | None,
    present: Callable[[], set[str] | None],
    chosen: str,
) -> None:
    assert str(choose(given, asked, image, present)) == chosen


def test_no_images_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without Docker's command."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert images() is None
    monkeypatch.setenv("PATH", "")
    assert images() is None


def test_given_broker_is_used_unchanged() -> None:
    with started(choose("h:1", None, None, never)) as servers:
        assert servers == "h:1"
