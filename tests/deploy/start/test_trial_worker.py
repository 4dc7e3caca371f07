"""A worker of `deniable dev` that does not come up is reported with the end of its log."""

from pathlib import Path

import pytest

from deploy.broker.child_processes import spawn, stop
from deploy.start import trial_worker
from deploy.start.trial_worker import TrialWorkerError, ready_page_of


def test_worker_that_ends_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    child = spawn(["sh", "-c", "echo it is broken; exit 1"], log)
    with pytest.raises(TrialWorkerError, match=r"^the worker did not start; the end of .*:\nit is broken$"):
        ready_page_of(child, log)
    stop([child])


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("nothing", "it printed no address of its page"),
        ("page: http://127.0.0.1:1/", "nothing answers at 127.0.0.1:1: .*refused"),
    ],
)
def test_worker_that_is_never_ready_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, why: str
) -> None:
    monkeypatch.setattr(trial_worker, "READY_SECONDS", 1.0)
    log = tmp_path / "worker.log"
    child = spawn(["sh", "-c", f"echo '{printed}'; exec sleep 60"], log)
    with pytest.raises(TrialWorkerError, match=rf"the worker is not ready after 1 s: {why}.*; the end of "):
        ready_page_of(child, log)
    stop([child])
