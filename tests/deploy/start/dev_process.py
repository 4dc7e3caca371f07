"""`deniable dev` as a process in a folder."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from deniable.deploy.broker.child_processes import Child, last_lines, spawn, stop
from tests.support.processes import wait_until

READY = "Ctrl-C ends it"


class Dev:
    """A running `deniable dev`; construction waits until all runs."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *options: str) -> None:
        self.log = folder / "dev.log"
        self.log.write_text("")
        command = [sys.executable, "-P", "-m", "deniable", "dev", "--web-port", "0", "--edge-port", "0"]
        command += options
        self.process: Child = spawn(command, self.log, {**environment, "PYTHONPATH": os.getcwd()}, folder)
        assert wait_until(lambda: READY in self.output() or self.process.poll() is not None)
        assert READY in self.output(), self.output()

    def output(self) -> str:
        return last_lines(self.log, count=100)

    def page(self) -> str:
        """Return ADDRESS:PORT of the page."""
        return self.output().partition("page:  http://")[2].partition("/")[0]

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def end(self) -> None:
        stop([self.process], 60)
