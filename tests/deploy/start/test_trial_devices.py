"""An edge or a relay of `deniable dev`: what is printed of them, and of those that do not come up."""

from pathlib import Path

import pytest

from deniable.deploy.broker.child_processes import spawn, stop
from deniable.deploy.start import trial_devices
from deniable.deploy.start.trial_devices import NO_RELAY, ready_devices
from tests.support.messages import PinMessages

EDGE = "uploads: http://127.0.0.1:8330/v1/reports\npublic key: k\ntry it: http://127.0.0.1:8330/try\n"


def devices(folder: Path, **printed: str):
    """Return processes that print this to their logs, then wait."""
    started = {}
    for name, text in printed.items():
        log = folder / name
        log.write_text("")
        started[name] = spawn(["sh", "-c", f"echo '{text}'; exec sleep 60"], log), log
    return started


def ready(started):
    try:
        return ready_devices(started)
    finally:
        stop([child for child, _ in started.values()])


def test_addresses_and_key_of_an_edge_are_returned(tmp_path: Path) -> None:
    both = devices(tmp_path, relay="[info] partition opened", edge=EDGE + "[info] uploads are taken")
    assert ready(both) == EDGE.splitlines()


def test_an_edge_alone_is_not_waited_for_and_says_what_it_lacks(tmp_path: Path) -> None:
    assert ready(devices(tmp_path, edge=EDGE)) == [*EDGE.splitlines()[:3], NO_RELAY]


@pytest.mark.slow
def test_an_edge_that_takes_nothing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    monkeypatch.setattr(trial_devices, "READY_SECONDS", 1.0)
    both = devices(tmp_path, relay="[info] partition opened", edge=EDGE + "refused: too few replicas")
    pin_messages({"an edge refuses": lambda: ready(both)})


def test_a_relay_that_ends_is_reported(tmp_path: Path, pin_messages: PinMessages) -> None:
    log = tmp_path / "relay"
    child = spawn(["sh", "-c", "echo another secret; exit 3"], log)
    pin_messages({"a relay ends": lambda: ready({"relay": (child, log)})})
