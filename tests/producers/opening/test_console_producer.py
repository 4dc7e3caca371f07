"""A producer on the console prints what would leave, and leaves secret and budgets of the file alone."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.config.file import load
from deniable.producers.errors import DeliveryError
from deniable.producers.opening.console_producer import open_on_console

FILE = """
kafka: {bootstrap_servers: "127.0.0.1:1"}
collections:
  - {name: plan, mechanism: k-rr, values: [free, team], epsilon: 16, window_seconds: 86400, grace_seconds: 5,
     reports_per_window: 9, budget: none}
  - {name: any, mechanism: rappor, bits: 16, hashes: 1, cohorts: 1, epsilon_inf: 4, epsilon_one: 2,
     candidates: [BOS], window_seconds: 60, grace_seconds: 5, budget: none}
"""
NOT_CLOSED = """
import deniable, sys
producer = deniable.open_producer(sys.argv[1], console=True)
producer.report("plan", "free", client="one")
producer.record("any", "a text", client="one")
print(producer._config.data_dir)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "deniable.yaml"
    path.write_text(FILE)
    return path


def test_each_pack_is_a_line_of_randomized_reports(file: Path) -> None:
    lines = io.StringIO()
    with open_on_console(load(file), lines) as producer:
        folder = producer._config.data_dir
        producer.report("plan", ["free", "team", "nonsense"], client=["one", "two", "three"])
        producer.record("any", "a text", client="one")
        producer.flush()
        plan, text = map(json.loads, sorted(lines.getvalue().splitlines(), reverse=True))
        assert producer.counters().acknowledged == {"plan": 3, "any": 1}
    assert (plan["collection"], plan["mechanism"]) == ("plan", "k-rr")
    assert set(plan["reports"]) <= {"free", "team", "(other)"}
    assert (text["collection"], text["cohort"], len(text["reports"][0])) == ("any", 0, 4)
    assert [each.name for each in file.parent.iterdir()] == ["deniable.yaml"]
    del producer
    assert not folder.exists()


def test_console_that_is_gone_is_said(file: Path) -> None:
    lines = io.StringIO()
    producer = open_on_console(load(file), lines)
    lines.close()
    producer.report("plan", "free", client=None)
    with pytest.raises(DeliveryError, match="cannot be printed"):
        producer.close(timeout=5)


@pytest.mark.slow
def test_end_of_the_process_prints_what_was_not_closed(file: Path) -> None:
    command = [sys.executable, "-c", NOT_CLOSED, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    folder, *packs = done.stdout.splitlines()
    assert {json.loads(each)["collection"] for each in packs} == {"plan", "any"}
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(folder).exists()
