"""Failures of peers appear in the results and do not stop the benchmark."""

import importlib
import logging
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bench.comparison.failures import attempt
from bench.comparison.parts.comparison import compare_with_peers
from bench.comparison.report import results
from bench.comparison.report.figure import ResultsPart
from bench.comparison.report.results import markdown
from bench.comparison.timing import contestant
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import QUICK, Job

pytestmark = pytest.mark.slow

ASKED = {"k": 10, "epsilon": 1.0}


def test_missing_library_has_a_row_with_the_reason():
    with Contestant("ours.deniable_runner") as ours, Contestant("absent_runner") as absent:
        job = Job(absent, "count k-RR", ASKED)
        found = compare_with_peers("k-RR", Job(ours, "count k-RR", ASKED), [job], QUICK, 10.0)
        assert found.figures == []
        mine, theirs = found.rows
        assert mine["reports/s"] > 0
        assert theirs["library"] == "absent"
        assert theirs["reports/s"] == ""
        assert "absent_runner" in theirs["does otherwise"]
        with pytest.raises(ContestantError, match="absent_runner"):
            compare_with_peers("k-RR", job, [], QUICK, 10.0)


def test_goal_is_not_judged_without_every_peer():
    """The missing one might be the fastest: the ratio would be too good."""
    with Contestant("ours.deniable_runner") as ours, Contestant("absent_runner") as absent:
        job = Job(ours, "count k-RR", ASKED)
        found = compare_with_peers("k-RR", job, [job, Job(absent, "count k-RR", ASKED)], QUICK, 10.0)
        assert [(figure.goal, figure.met) for figure in found.figures] == [(10.0, None)]
        (why,) = found.unjudged
        assert why.startswith("k-RR: absent_runner: ")
        complete = compare_with_peers("k-RR", job, [job], QUICK, 10.0, aside=[replace(job, called="itself")])
        assert [(figure.name, figure.goal) for figure in complete.figures] == [
            ("k-RR", 10.0),
            ("k-RR, beside itself", None),
        ]
        assert complete.unjudged == []


def test_library_survives_a_failed_job():
    with Contestant("ours.deniable_runner") as ours:
        with pytest.raises(ContestantError, match=r"^ours.deniable_runner: "):
            ours.prepare("k-RR", 1, k=1, epsilon=1.0)
        ours.prepare("k-RR", 10, k=2, epsilon=1.0)
        assert ours.run().seconds > 0


def test_hanging_library_is_killed(pin_messages, monkeypatch):
    with Contestant("ours.growth_runner") as ours:
        ours.prepare("estimate values", 1_000_000, size=100)
        monkeypatch.setattr(contestant, "ANSWER_SECONDS", 0.3)
        pin_messages({"a library that hangs": ours.run})


def test_failing_part_reports_the_reason():
    def measure(_):
        raise ContestantError("some_runner: it fell over")

    def fail(_):
        return 1 // 0

    broken = attempt(SimpleNamespace(measure=fail, __name__="bench.comparison.parts.some"), QUICK)
    (why,) = broken.unjudged
    assert re.fullmatch(r"some, all of it: ZeroDivisionError at fail, line \d+: integer .*by zero", why)
    part = attempt(SimpleNamespace(measure=measure, __name__="bench.comparison.parts.some"), QUICK)
    assert part.unjudged == ["some, all of it: some_runner: it fell over"]
    text = markdown([part], {}, QUICK)
    assert "0 of 0 goals that could be judged are met, others are not judged." in text
    assert "**Not judged**: some, all of it: some_runner: it fell over" in text


@pytest.fixture
def command(monkeypatch):
    """The benchmark's command, without its changes to logging and signals."""
    module = importlib.import_module("bench.comparison.__main__")
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    level = logging.getLogger("producers").level
    yield module
    logging.getLogger("producers").setLevel(level)


def test_single_part_is_printed_and_not_written(command, monkeypatch):
    part = ResultsPart("Counting", "What was done.", unjudged=["k-RR: a-peer: it is gone"])
    counting = SimpleNamespace(measure=lambda _: part, __name__="counting")
    monkeypatch.setitem(command.PARTS, "counting", counting)
    monkeypatch.setattr(command, "install", lambda: {"a-peer==1": "no such version"})
    monkeypatch.setattr(results, "write", None)
    result = CliRunner().invoke(command.main, ["--only", "counting"], standalone_mode=False)
    assert result.exception is None
    assert "a-peer==1" in result.stderr
    assert "no such version" in result.stderr
    text = "\n## Counting\n\nWhat was done.\n\n- **Not judged**: k-RR: a-peer: it is gone\n"
    assert result.stdout == f"{text}\n"
