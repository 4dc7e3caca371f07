"""The page's logging handler and its batch job: every event is one report, and the log shows no value."""

import logging
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from deniable.protocol.wire import decode
from tests.support.producers.topics import read
from tests.support.producers.web.recipes import COMMANDS, FILES, command, write_files

Arrived = Callable[[], int]
ROWS = 250_000


def run(line: str, folder: Path) -> str:
    """Run a line of the page in a shell, with this Python; return what it prints on stderr."""
    shell = line.replace("python", sys.executable, 1)
    ended = subprocess.run(
        ["sh", "-c", shell], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    return ended.stderr


def test_page_has_these_files_and_commands() -> None:
    assert list(FILES) == [
        "deniable.yaml",
        "fastapi_app.py",
        "flask_app.py",
        "recording_handler.py",
        "logging_app.py",
        "job.py",
    ]
    assert [line.split()[0] for line in COMMANDS] == ["uvicorn", "gunicorn", "python"]


@pytest.mark.broker
def test_every_log_call_with_an_event_is_one_report(folder: Path, arrived: Arrived) -> None:
    assert "settings" not in run("python logging_app.py", folder)
    assert arrived() == 1000


@pytest.mark.all
@pytest.mark.broker
def test_every_row_of_the_job_is_one_report(folder: Path, arrived: Arrived) -> None:
    rows = (f"{'home' if number % 3 else 'search'},user-{number}\n" for number in range(ROWS))
    (folder / "opened.csv").write_text("page,user\n" + "".join(rows))
    run(command("python"), folder)
    assert arrived() == ROWS


AT_EXIT = """
import atexit, deniable
producer = deniable.open_producer("deniable.yaml")
atexit.register(producer.close, timeout=60)
producer.report("opened", "home", clients="user-1")
producer.flush()  # connects
for user in range(2, 1001):
    producer.record("opened", "home", client=f"user-{user}")
"""


@pytest.mark.broker
def test_producer_that_closes_at_exit_sends_everything(broker: str, topic_prefix: str, folder: Path) -> None:
    """Whatever connected later runs earlier at the exit: Kafka's client must not close itself there."""
    (folder / "at_exit.py").write_text(AT_EXIT)
    command = [sys.executable, "at_exit.py"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[1:] == [], "the first line names the new secret"
    records = read(broker, f"{topic_prefix}reports")
    assert sum(decode(record.value).reports for record in records) == 1000


@pytest.fixture
def handler_class(tmp_path: Path) -> Any:
    """The page's handler, imported from its file."""
    write_files(tmp_path)
    spec = spec_from_file_location("recording_handler", tmp_path / "recording_handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RecordingHandler


class Recorded(list[tuple[Any, ...]]):
    """Stands for a producer."""

    def record(self, *event: object) -> None:
        if not isinstance(event[1], str):
            raise TypeError("value must be text")
        self.append(event)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def log(handler_class: Any, recorded: Recorded) -> logging.Logger:
    log = logging.Logger("shop", logging.DEBUG)
    log.addHandler(handler_class(recorded, logging.INFO))
    return log


def test_only_calls_with_an_event_at_this_level_are_recorded(log: logging.Logger, recorded: Recorded) -> None:
    log.info("opened settings")
    log.debug("opened", extra={"deniable": ("opened", "settings")})
    assert recorded == []
    log.info("opened", extra={"deniable": ("opened", "settings")})
    log.warning("opened %s", "x", extra={"deniable": ("opened", "home", "user-1")})
    assert recorded == [("opened", "settings"), ("opened", "home", "user-1")]


def test_wrong_event_does_not_fail_the_application(
    log: logging.Logger, recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    value = 7000 + 391  # the traceback shows this line
    log.info("opened", extra={"deniable": ("opened", value)})
    assert recorded == []
    shown = capsys.readouterr().err
    assert "value must be text" in shown
    assert "7391" not in shown
