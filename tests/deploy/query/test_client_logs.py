"""Commands that read say themselves what an outage means: what Kafka's clients log of it is not shown."""

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.cluster.connection.probe import UnreachableError
from deniable.deploy.cli.commands import deniable

FILE = """\
revision: 1
kafka: {bootstrap_servers: "127.0.0.1:9"}
collections:
  - {name: carrier, mechanism: k-rr, values: [AA, B6], other: false, epsilon: 3.0, window_seconds: 3600,
     grace_seconds: 30, budget: none}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "watch carrier",
        "export carrier --output files",
        "inspect reports",
        "replay",
        "rollup carrier --last 1d",
        "rollup carrier --last 1d --former before.yaml",
        "compare carrier --between 2026-01 --and 2026-02",
        "changes carrier --last 1d",
        "detect carrier --last 1d",
    ],
)
def test_clients_are_silent(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(FILE, encoding="utf-8")
    Path("before.yaml").write_text(FILE.replace("3.0", "2.0"), encoding="utf-8")
    ended = CliRunner().invoke(deniable, line.split())
    assert isinstance(ended.exception, UnreachableError), ended.output
    (handler,) = (each for each in logging.getLogger().handlers if each.filters)

    def is_shown(library: str) -> bool:
        return bool(handler.filter(logging.LogRecord(library, logging.ERROR, "", 0, "away", (), None)))

    assert [is_shown(each) for each in ("kafka.cluster", "aiokafka", "other")] == [False, False, True]
