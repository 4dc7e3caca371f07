"""What `produce` says of a run: on a terminal while it goes on, in any case at its end."""

import logging
import os
import pty
import time

import pytest

from deniable.config.settings.allowance import Budget
from deniable.deploy.produce.timing import RunTiming
from deniable.deploy.produce.view import ProduceView, WaitView, spent_notice, summary
from deniable.producers.metrics.counters import Backlog, Counters
from tests.support.deploy.terminal import read_to_end
from tests.support.messages import PinMessages

SERVERS = "127.0.0.1:9092"


def counters(**given: object) -> Counters:
    empty = {"stored": {}, "dropped": {}, "refused": {}, "acknowledged": {}, "expired": {}}
    return Counters(**{**empty, "packs": 0, "bytes": 0, "backlog": Backlog(), **given})


def test_messages_of_summaries(pin_messages: PinMessages) -> None:
    """They leave out what did not happen."""
    refused = {("a", "over_budget"): 1, ("a", "over_window"): 2, ("a", "too_late"): 3}
    rejected = {("a", "too_late"): 2, ("b", "too_late"): 1}
    all_sent = counters(stored={"a": 500}, acknowledged={"a": 500}, packs=2)
    all_happened = counters(
        stored={"a": 300},
        acknowledged={"a": 500},
        packs=2,
        refused=refused,
        expired={"a": 4},
        backlog=Backlog(packs=5),
    )
    others = counters(
        stored={"a": 300},
        acknowledged={"a": 500, "b": 40, "": 7},
        packs=9,
        expired={"b": 30, "a": 4},
        rejected=rejected,
    )
    pin_messages(
        {
            "nothing was sent": lambda: summary(counters(), 0, 1.0, SERVERS, "a"),
            "all was sent": lambda: summary(all_sent, 0, 2.0, SERVERS, "a"),
            "all that happens to a collection": lambda: summary(all_happened, 6, 1.0, SERVERS, "a"),
            "reports of other collections": lambda: summary(others, 0, 1.0, SERVERS, "a"),
            "one of three packs cannot be sent": lambda: summary(
                counters(backlog=Backlog(packs=3), unsendable=1), 0, 1.0, SERVERS, "a"
            ),
            "the only pack cannot be sent": lambda: summary(
                counters(backlog=Backlog(packs=1), unsendable=1), 0, 1.0, SERVERS, "a"
            ),
        }
    )


def test_end_of_the_period_is_named_if_all_budgets_are_spent(pin_messages: PinMessages) -> None:
    over, now = {("a", "over_budget"): 9}, 1_795_500_000.0

    def notice(period: int) -> str:
        return spent_notice(counters(refused=over), Budget(8.0, 1e-6, period), now)

    pin_messages({"of a day": lambda: notice(86_400), "the longest one": lambda: notice(2**32 - 1)})
    budget = Budget(8.0, 1e-6, 86_400)
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


@pytest.mark.slow
def test_long_waits_are_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    with WaitView().shown("the bus"):
        pass
    waits = WaitView(RunTiming(notice=0))
    for _ in range(2):
        with waits.shown("the train"):
            time.sleep(0.2)
    assert capsys.readouterr().err == "the train\n"
