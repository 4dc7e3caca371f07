"""A library in a child process, which runs jobs on one core."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryFile
from threading import Timer
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

from bench.comparison.timing.peer_environment import PYTHON, install
from bench.sections import ROOT

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


ANSWER_SECONDS = 900.0  # the longest job takes a tenth of that


class ContestantError(RuntimeError):
    """A library could not be loaded, or failed at a job."""


class Timing(NamedTuple):
    """Processor time and wall time of a job, seconds, and its result."""

    cpu_seconds: float
    seconds: float
    result: object


class Contestant:
    """A child process with one runner; as a context manager it ends the child.

    Parameters
    ----------
    runner : dotted name of a module within `runners`, such as `peers.scipy_runner`; of `peers` in their
        environment.

    A library that cannot be loaded, or does not answer in 15 minutes, fails at every job.
    """

    def __init__(self, runner: str) -> None:
        self.runner = runner
        self._log = TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        python = PYTHON if runner.startswith("peers.") else sys.executable
        command = [python, "-m", "bench.comparison.runners.serve", runner]
        self._child = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.library, self.version, self._failed = runner.rpartition(".")[2].removesuffix("_runner"), "", ""
        try:
            answer = self._answer()
        except ContestantError as error:
            self._failed = str(error)
        else:
            self.library, self.version = str(answer["library"]), str(answer["version"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self, job: str, count: int, **parameters: object) -> None:
        """Prepare to run a job `count` times; ContestantError if the library fails."""
        self._ask({"job": job, "count": count, "parameters": parameters})

    def run(self) -> Timing:
        """Run what was prepared; ContestantError if the library fails."""
        answer = self._ask({})
        return Timing(float(str(answer["cpu_seconds"])), float(str(answer["seconds"])), answer["result"])

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.communicate()
        self._log.close()

    def _ask(self, order: dict[str, object]) -> dict[str, object]:
        if self._failed:
            raise ContestantError(self._failed)
        pipe = cast("IO[str]", self._child.stdin)
        with suppress(BrokenPipeError):  # then `_answer` raises with the last line of its log
            pipe.write(json.dumps(order) + "\n")
            pipe.flush()
        answer = self._answer()
        if "error" in answer:
            raise ContestantError(f"{self.runner}: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, object]:
        began = time.monotonic()
        watch = Timer(ANSWER_SECONDS, self._child.kill)
        watch.start()
        try:
            line = cast("IO[str]", self._child.stdout).readline()
        finally:
            watch.cancel()
        if not line:
            if time.monotonic() - began >= ANSWER_SECONDS:
                raise ContestantError(f"{self.runner}: no answer in {ANSWER_SECONDS:.0f} s")
            self._log.seek(0)
            last = self._log.read().strip().rpartition("\n")[2]
            raise ContestantError(f"{self.runner}: {last or 'its process ended'}")
        answer: dict[str, object] = json.loads(line)
        return answer


@contextmanager
def opened(*runners: str) -> Iterator[list[Contestant]]:
    """Start a contestant for each runner, after the peers' environment is complete; end all."""
    install()
    with ExitStack() as stack:
        yield [stack.enter_context(Contestant(runner)) for runner in runners]
