"""Runs a command line in this process."""

import logging
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog

from deniable.deploy.cli.main import main
from tests.support.deploy.collection_texts import WHOLE

SEVERAL = """\
  - {name: several, mechanism: rappor-k-hot, hot: 2, values: [a, b, c], f: 0.5, p: 0.25, q: 0.75,
     window_seconds: 60, grace_seconds: 30,
     budget: {epsilon: 0.5, delta: 1e-6, period_seconds: 60, values: unchanged}}
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[[str], Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Runs a command line in this process, in a folder with a collection file and an input."""
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(WHOLE + SEVERAL)
    Path("lines.csv").write_text("carrier\nAA\n")
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    root = logging.getLogger()
    log_handlers, level = root.handlers[:], root.level
    root.handlers = []

    def run(line: str) -> Ended:
        monkeypatch.setattr("sys.argv", ["deniable", *shlex.split(line)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)
    root.handlers = log_handlers
    root.setLevel(level)
    structlog.reset_defaults()
