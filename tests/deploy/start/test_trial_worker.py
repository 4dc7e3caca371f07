"""A worker of `deniable dev` that does not come up is reported with the end of its log."""

from pathlib import Path

import pytest

from deniable.deploy.broker.child_processes import spawn, stop
from deniable.deploy.start import trial_worker
from deniable.deploy.start.trial_worker import ready_page_of
from tests.support.messages import PinMessages


def test_worker_that_ends_is_reported(tmp_path: Path, pin_messages: PinMessages) -> None:
    log = tmp_path / "worker.log"
    child = spawn(["sh", "-c", "echo it is broken; exit 1"], log)
    pin_messages({"a worker ends": lambda: ready_page_of(child, log)})
    stop([child])


@pytest.mark.slow
def test_worker_that_is_never_ready_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    monkeypatch.setattr(trial_worker, "READY_SECONDS", 1.0)

    def wait_for(printed: str) -> None:
        log = tmp_path / "worker.log"
        log.write_text("")
        child = spawn(["sh", "-c", f"echo '{printed}'; exec sleep 60"], log)
        try:
            ready_page_of(child, log)
        finally:
            stop([child])

    pin_messages(
        {
            "it prints no address": lambda: wait_for("nothing"),
            "nothing answers at its address": lambda: wait_for("page: http://127.0.0.1:1/"),
        }
    )
