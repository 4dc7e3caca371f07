"""`deniable aggregate`: a worker that is no longer let read ends with the sentence of its next start."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from click.testing import CliRunner

from deniable.aggregator.worker import WorkerError
from deniable.cluster.topics.checks import TopicSetupError
from deniable.deploy.services.aggregate import command as aggregate_command


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (TopicAuthorizationFailedError("d-reports"), "User:a may not Read topic d-reports"),
        (ValueError("why"), "the engine stopped by itself"),
    ],
)
def test_worker_losing_read_permission_reports_it(
    cause: Exception, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def ends(*_: Any) -> None:
        raise WorkerError("the engine stopped by itself") from cause

    def require(*_: Any) -> None:
        raise TopicSetupError("User:a may not Read topic d-reports")

    stub = SimpleNamespace(start=lambda: None, check=lambda: None, withdraw=lambda: None)
    monkeypatch.setattr(aggregate_command, "run_worker", ends)
    monkeypatch.setattr(aggregate_command, "deployment_of", lambda _: SimpleNamespace(collections={}))
    monkeypatch.setattr(aggregate_command, "LogWatch", lambda _: stub)
    monkeypatch.setattr(aggregate_command, "PrivacyWatch", lambda *_: stub)
    monkeypatch.setattr(aggregate_command, "Reload", lambda *_: stub)
    monkeypatch.setattr(aggregate_command.threading, "excepthook", None)
    monkeypatch.setattr(aggregate_command.topic_setup, "require", require)
    file = tmp_path / "deniable.yaml"
    file.write_text(
        "revision: 1\ncollections:\n  - {name: c, mechanism: k-rr, values: [a, b], epsilon: 1, "
        "window_seconds: 60, grace_seconds: 30, budget: none}\n"
    )
    ended = CliRunner().invoke(aggregate_command.aggregate, ["--config", str(file)])
    assert str(ended.exception) == message
