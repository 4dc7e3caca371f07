"""Programs that run for long wait for Kafka at their start, and end at once by a signal meanwhile."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from structlog.testing import capture_logs

from deniable.cluster.connection.probe import BrokerAwayError, RefusedError, UnreachableError
from deniable.cluster.topics.checks import TopicSetupError
from deniable.deploy.services import kafka_wait
from deniable.deploy.services.kafka_wait import once_kafka_answers
from tests.support.deploy.collection_texts import WHOLE
from tests.support.processes import new_port, wait_until

END_SECONDS = 5.0


def answering(*answers: Exception | int) -> Callable[[], int]:
    left = list(answers)

    def ask() -> int:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_wait, "RETRY_SECONDS", 0.0)


def test_an_absent_kafka_is_awaited_with_one_line_for_what_and_one_when_it_came() -> None:
    with capture_logs() as lines:
        assert once_kafka_answers(answering(UnreachableError("no"), BrokerAwayError("one"), 7)) == 7
        assert once_kafka_answers(answering(7)) == 7
    assert [each["log_level"] for each in lines] == ["warning", "info"]
    assert lines[0]["reason"] == "no"


@pytest.mark.parametrize("error", [RefusedError("password"), TopicSetupError("absent")], ids=repr)
def test_what_no_waiting_mends_ends_the_start(error: Exception) -> None:
    with pytest.raises(type(error)):
        once_kafka_answers(answering(UnreachableError("no"), error))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "option", "number"),
    [("aggregate", "--web-port", signal.SIGTERM), ("relay", "--metrics-port", signal.SIGINT)],
)
def test_who_waits_is_alive_and_not_ready_and_ends_at_once_by_a_signal(
    tmp_path: Path, command: str, option: str, number: signal.Signals
) -> None:
    (tmp_path / "deniable.yaml").write_text(f"relay: {{secret_file: secret}}\n{WHOLE}")
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "secret").write_bytes(bytes(range(32)))
    begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    run = [sys.executable, "-c", f"{begin}from deniable.deploy.cli.main import main; main()", command]
    log, port = tmp_path / "log", new_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*run, "--bootstrap-servers", "127.0.0.1:9", option, str(port)],
            cwd=tmp_path,
            stderr=output,
            stdout=output,
        )
    assert wait_until(lambda: "waiting for Kafka" in log.read_text(), 60)
    assert wait_until(lambda: _answers(port, "healthz", 200), 10)  # else Kubernetes would restart it
    assert _answers(port, "readyz", 503, "waiting for Kafka: ")
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert time.monotonic() - began < END_SECONDS
    assert log.read_text().count("\n") <= 2  # what it waits for, and perhaps the end of Ctrl-C's line


def _answers(port: int, path: str, status: int, text: str = "") -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return bool(answer.status == status)
    except HTTPError as error:
        return error.code == status and text in error.read().decode()
    except URLError:
        return False
