"""What `produce` says of a run: on a terminal while it goes on, in any case at its end."""

import logging
import os
import pty
import time

import pytest

from deploy.produce.timing import RunTiming
from deploy.produce.view import ProduceView, WaitView, spent_notice, summary
from producers.budget.allowance import Budget
from producers.metrics.counters import Backlog, Counters
from tests.support.deploy.terminal import read_to_end

SERVERS = "127.0.0.1:9092"


def counters(**given: object) -> Counters:
    empty = {"stored": {}, "dropped": {}, "refused": {}, "acknowledged": {}, "expired": {}}
    return Counters(**{**empty, "packs": 0, "bytes": 0, "backlog": Backlog(), **given})


def test_a_summary_leaves_out_what_did_not_happen() -> None:
    assert (
        summary(counters(stored={"a": 500}, acknowledged={"a": 500}, packs=2), 0, 2.0, SERVERS, "a")
        == "500 reports sent in 2 packs (250 reports/s) to 127.0.0.1:9092"
    )


def test_a_summary_shows_all_that_happened() -> None:
    refused = {("a", "over_budget"): 1, ("a", "over_window"): 2, ("a", "too_late"): 3}
    message = counters(
        stored={"a": 300},
        acknowledged={"a": 500},
        packs=2,
        refused=refused,
        expired={"a": 4},
        backlog=Backlog(packs=5),
    )
    assert summary(message, 6, 1.0, SERVERS, "a").split("; ") == [
        "500 reports sent in 2 packs (500 reports/s) to 127.0.0.1:9092",
        "200 of those kept by earlier runs",
        "6 lines skipped",
        "1 report refused, over the budget of their client",
        "2 reports refused, over their client's limit for a window",
        "3 reports refused, too late for their window",
        "4 of those sent reached Kafka after the grace of their window: not counted",
        "5 packs kept for the next deniable produce with this folder",
    ]


def test_reports_of_other_collections_kept_by_earlier_runs_are_named() -> None:
    message = counters(
        stored={"a": 300},
        acknowledged={"a": 500, "b": 40, "": 7},
        packs=9,
        expired={"b": 30, "a": 4},
        rejected={("a", "too_late"): 2, ("b", "too_late"): 1},
    )
    unknown = "of collections, or of parameters, that are not in the collection file"
    late = "reached Kafka after the grace of their window: not counted"
    assert summary(message, 0, 1.0, SERVERS, "a").split("; ") == [
        "547 reports sent in 9 packs (547 reports/s) to 127.0.0.1:9092",
        "247 of those kept by earlier runs",
        "40 of those of b",
        f"7 of those {unknown}",
        "2 reports rejected by the edge and lost, too late for their window",
        "1 report of b rejected by the edge and lost, too late for their window",
        f"30 of those sent of b {late}",
        f"4 of those sent {late}",
    ]


def test_packs_that_cannot_be_sent_are_reported_apart() -> None:
    message = counters(backlog=Backlog(packs=3), unsendable=1)
    assert summary(message, 0, 1.0, SERVERS, "a").split("; ")[1:] == [
        "1 pack kept but cannot be sent: damaged, too large, of a later version, or for another destination",
        "2 packs kept for the next deniable produce with this folder",
    ]
    assert "for the next" not in summary(
        counters(backlog=Backlog(packs=1), unsendable=1), 0, 1.0, SERVERS, "a"
    )


def test_nothing_was_sent_to_a_broker_that_got_nothing() -> None:
    assert summary(counters(), 0, 1.0, SERVERS, "a") == "0 reports sent in 0 packs (0 reports/s)"


@pytest.mark.parametrize(
    ("period", "end"), [(86_400, "2026-11-25 00:00:00Z"), (2**32 - 1, "2106-02-07 06:28:15Z")]
)
def test_end_of_the_period_is_named_if_all_budgets_are_spent(period: int, end: str) -> None:
    over, budget, now = {("a", "over_budget"): 9}, Budget(8.0, 1e-6, period), 1_795_500_000.0
    assert spent_notice(counters(refused=over), budget, now) == (
        f"the clients have spent their budgets; the period ends at {end}, and the next one begins with "
        "whole budgets. deniable spent shows what a client has spent"
    )
    assert spent_notice(counters(refused=over, stored={"a": 1}), budget, now) == ""
    assert spent_notice(counters(refused={("a", "too_late"): 9}), budget, now) == ""
    assert spent_notice(counters(refused=over), None, now) == ""


def test_progress_is_for_terminals_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich take a pipe for a terminal
    view = ProduceView()
    with view.shown():
        view.update(10, 2.0, 50, 100)
    assert capsys.readouterr() == ("", "")


def test_terminal_shows_count_and_rate_and_logs_above_them(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    with open(terminal, "w") as stderr:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stderr", stderr)
        handler = logging.StreamHandler(stderr)
        logging.getLogger().addHandler(handler)
        try:
            view = ProduceView()
            with view.shown():
                view.update(10_000, 2.0, None, None)
                assert handler.stream is not stderr
                logging.getLogger().warning("the broker is away")
            assert handler.stream is stderr
        finally:
            logging.getLogger().removeHandler(handler)
    message = read_to_end(controller)
    os.close(controller)
    assert "10,000 reports, 5,000 a second" in message
    assert "the broker is away" in message


def test_one_report_is_singular() -> None:
    message = counters(stored={"a": 1}, acknowledged={"a": 1}, packs=1, backlog=Backlog(packs=1))
    assert summary(message, 1, 1.0, SERVERS, "a").split("; ") == [
        "1 report sent in 1 pack (1 reports/s) to 127.0.0.1:9092",
        "1 line skipped",
        "1 pack kept for the next deniable produce with this folder",
    ]


def test_long_waits_are_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    with WaitView().shown("the bus"):
        pass
    waits = WaitView(RunTiming(notice=0))
    for _ in range(2):
        with waits.shown("the train"):
            time.sleep(0.2)
    assert capsys.readouterr().err == "the train\n"
