"""`deniable broker` says at once what takes long."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from deniable.deploy.broker import command


def test_the_start_is_announced_before_kafka_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Starting:
        def __init__(self, *_: object, own_session: bool) -> None:
            assert not own_session

        def __enter__(self) -> SimpleNamespace:
            command.click.echo("Kafka starts")
            return SimpleNamespace(bootstrap_servers="127.0.0.1:1", wait=lambda: None)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(command, "Broker", Starting)
    lines = CliRunner().invoke(command.broker, []).output.splitlines()
    assert lines == ["starting Kafka …", "Kafka starts", "127.0.0.1:1", "Kafka is running; Ctrl-C ends it"]
