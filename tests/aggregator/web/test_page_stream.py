"""The page and its stream of events: restarts, silence, hidden pages, and too many pages."""

import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aggregator.web import server_sent_events
from estimators.mechanisms.krr import KRR
from tests.support.aggregator.browser import Watched, watched
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OTHER_FRUIT = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))


@pytest.mark.slow
def test_worker_restart_is_survived(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same port, with another collection file: no reload, and nothing of the previous file remains."""
    set_clock(monkeypatch)
    with ExitStack() as stack:
        with Served().serving() as first:
            first.take(changed(estimate_of(), reports=1111), changed(estimate_of(), window_start=T0 - 10))
            shown = stack.enter_context(watched(browser, first.address, worker_goes=True))
            shown.status("Live")
            shown.page.evaluate("window.kept = true")
            shown.section("place").wait_for()
        shown.status("Worker unreachable, retrying")
        assert "gradient" in fill(shown)
        second = stack.enter_context(Served({OTHER_FRUIT.fingerprint: OTHER_FRUIT}).serving(first.port))
        shown.status("Waiting for the first estimate")
        assert shown.page.get_by_role("region").count() == 1
        assert "(ε = 1)" in shown.section().locator(".privacy").inner_text()
        assert shown.section().locator(".estimate").is_hidden()
        assert shown.section().locator(".history").is_hidden()
        second.take(changed(estimate_of(OTHER_FRUIT), reports=2222))
        shown.section().locator(".reports", has_text="2,222").wait_for()
        assert shown.page.evaluate("window.kept")


@pytest.mark.slow
def test_restarted_page_marks_old_figures(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch)
    with ExitStack() as stack:
        with Served().serving() as first:
            first.take(estimate_of())
            shown = stack.enter_context(watched(browser, first.address, worker_goes=True))
            shown.status("Live")
        second = stack.enter_context(Served().serving(first.port))
        shown.section().locator(".overdue", has_text="Old: the worker restarted").wait_for()
        assert shown.section().locator(".reports").inner_text() == "40"
        second.take(estimate_of())
        shown.status("Live")
        assert shown.section().locator(".overdue").is_hidden()


def fill(shown: Watched) -> str:
    found: str = (
        shown.section()
        .locator("tbody .plot")
        .first.evaluate("plot => getComputedStyle(plot, '::before').backgroundImage")
    )
    return found


def test_silent_worker_is_shown_as_unreachable(browser: "Browser", served: Served) -> None:
    """As if it hangs: its connection stays open, and nothing arrives."""
    served.take(estimate_of())
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        shown = Watched(page, served.address)
        page.goto(served.address)
        shown.status("Live")
        before = shown.streams()
        served.fall_silent()
        page.clock.fast_forward(10_000)
        assert shown.streams() == before
        with page.expect_request(
            re.compile("/api/events")
        ):  # reconnects, and gets the worker's current state
            page.clock.fast_forward(6_000)
        shown.status("Live")
        assert shown.wrong == []


def test_hidden_page_has_no_stream(browser: "Browser", served: Served) -> None:
    served.take(estimate_of())
    with watched(browser, served.address) as shown:
        shown.status("Live")
        served.wait_until(lambda: served.streams.open == 1)
        see(shown, seen=False)
        served.wait_until(lambda: served.streams.open == 0)
        served.take(changed(estimate_of(), revision=9, reports=77))
        see(shown, seen=True)
        shown.section().locator(".reports", has_text="77").wait_for()
        shown.status("Live")
        served.wait_until(lambda: served.streams.open == 1)


def see(shown: Watched, *, seen: bool) -> None:
    shown.page.evaluate(
        """hidden => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        not seen,
    )


def test_excess_page_reports_it_and_retries(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "MOST_STREAMS", 0)
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        shown = Watched(page, served.address)
        page.goto(served.address)
        shown.status("This worker serves as many pages as it can, retrying")
        monkeypatch.undo()
        page.clock.fast_forward(31_000)
        shown.status("Waiting for the first estimate")
        assert shown.wrong == []
