"""Ctrl-C while Kafka is away: the wait is announced, and a second one ends at once and keeps all."""

import signal
import socket
from contextlib import closing
from pathlib import Path

import pytest

from deniable.producers.storage.store import Store
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

PRODUCE = ("produce", "carrier", "--input", "lines.csv", "--field", "carrier", "--no-clients")
SOON_SECONDS = 9  # it would wait for 10
STARTING_SECONDS = 60


def lines_kept(folder: Path) -> int:
    """Of the input, by the folder's store."""
    if not (folder / ".deniable" / "secret").exists():
        return 0
    with closing(Store(folder / ".deniable")) as store:
        return sum(lines for (lines,) in store.rows("SELECT lines FROM inputs"))


@pytest.mark.slow
def test_second_interrupt_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens to nobody
        deployment = Deployment(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}", "")
        (tmp_path / "lines.csv").write_text("carrier\n" + "AA\n" * 5)
        with deployment.running("run.log", *PRODUCE, "--follow") as run:
            is_kept = wait_until(lambda: lines_kept(tmp_path) == 6, STARTING_SECONDS)
            assert is_kept, deployment.output("run.log")
            run.send_signal(signal.SIGINT)
            assert wait_until(
                lambda: "waiting up to 10 s until Kafka has all" in deployment.output("run.log"), SOON_SECONDS
            )
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            assert run.wait(SOON_SECONDS) == 130
        assert "Traceback" not in deployment.output("run.log")
        with closing(Store(tmp_path / ".deniable")) as store:
            assert store.rows("SELECT lines FROM inputs") == [(6,)]
            assert store.rows("SELECT packs FROM lanes") == [(1,)]
