"""The worker that `deniable dev` runs."""

import time
from pathlib import Path
from urllib.parse import urlsplit

from deniable.cluster.connection.start_log import StartLog
from deniable.deploy.broker.child_processes import Child, deniable_command, last_lines, spawn
from deniable.deploy.services.aggregate.ready import why_not_ready
from deniable.estimators.errors import DeniableError

# A worker that was killed stays in Kafka's group for a while, and the next one waits for its partitions.
READY_SECONDS = 120.0
STEP_SECONDS = 0.1


class TrialWorkerError(DeniableError, RuntimeError):
    """A process of `deniable dev` cannot start or has ended; the message shows the end of its log."""


def start_worker(config: Path, revision: int, web_port: int, log: Path) -> Child:
    """Start a worker on this file, which counts with this revision."""
    log.write_text("")
    return spawn(
        deniable_command(
            "aggregate",
            *("--config", str(config), "--web-port", str(web_port), "--trial-revision", str(revision)),
        ),
        log,
    )


def ready_page_of(worker: Child, log: Path) -> str:
    """Wait until the worker is ready; return the address of its page.

    Raises
    ------
    TrialWorkerError if it ends, or is not ready within two minutes.
    """
    page, why = "", "it printed no address of its page"
    progress = StartLog(READY_SECONDS)
    while progress.has_time(f"the worker: {why}") and worker.poll() is None:
        page = page or _page_in(log)
        if page and not (why := why_not_ready(urlsplit(page).netloc)):
            return page
        time.sleep(STEP_SECONDS)
    what = f"is not ready after {READY_SECONDS:g} s: {why}" if worker.poll() is None else "did not start"
    raise TrialWorkerError(ending(f"the worker {what}", log))


def ending(what: str, log: Path) -> str:
    """Return a message with the end of a log."""
    return f"{what}; the end of {log}:\n{last_lines(log)}"


def _page_in(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.removeprefix("page: ") for line in lines if line.startswith("page: ")), "")
