"""The page and its stream of events: restarts, silence, hidden pages, and too many pages."""

import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from deniable.aggregator.web import server_sent_events
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.browser import ENGLISH, Watched, visit
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.aggregator.served import Served, set_clock
from tests.support.processes import new_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OTHER_FRUIT = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))


@pytest.mark.slow
def test_worker_restart_is_survived(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same port, without a reload: old figures are marked until there are newer ones.

    With another collection file, nothing of the previous one remains.
    """
    set_clock(monkeypatch)
    with ExitStack() as stack:
        with Served().serving(new_port()) as first:
            first.take(changed(estimate_of(), reports=1111), changed(estimate_of(), window_start=T0 - 10))
            shown = stack.enter_context(visit(tab, first.address, worker_goes=True))
            shown.status("Live")
            shown.page.evaluate("window.kept = true")
        shown.status("Worker unreachable, retrying")
        assert "gradient" in fill(shown)
        with Served().serving(first.port) as second:
            shown.section().locator(".overdue", has_text="Old: the worker restarted").wait_for()
            assert shown.section().locator(".reports").inner_text() == "1,111"
            second.take(changed(estimate_of(), reports=1112))
            shown.status("Live")
            shown.section().locator(".reports", has_text="1,112").wait_for()
            assert shown.section().locator(".overdue").is_hidden()
            shown.section("place").wait_for()
        shown.status("Worker unreachable, retrying")
        third = stack.enter_context(Served({OTHER_FRUIT.fingerprint: OTHER_FRUIT}).serving(first.port))
        shown.status("Waiting for the first estimate")
        assert shown.page.get_by_role("region").count() == 1
        assert "(ε = 1)" in shown.section().locator(".privacy").inner_text()
        assert shown.section().locator(".estimate").is_hidden()
        assert shown.section().locator(".history").is_hidden()
        third.take(changed(estimate_of(OTHER_FRUIT), reports=2222))
        shown.section().locator(".reports", has_text="2,222").wait_for()
        assert shown.page.evaluate("window.kept")


def fill(shown: Watched) -> str:
    found: str = (
        shown.section()
        .locator("tbody .plot")
        .first.evaluate("plot => getComputedStyle(plot, '::before').backgroundImage")
    )
    return found


def test_page_asks_again_on_its_own(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a worker that has too many pages; and of one that is silent, though its stream stays open."""
    with browser.new_context(**ENGLISH) as context, ExitStack() as stack:
        page = context.new_page()
        page.clock.install()
        with monkeypatch.context() as full:
            full.setattr(server_sent_events, "MOST_STREAMS", 0)
            shown = stack.enter_context(visit(page, served.address))
            shown.status("This worker serves as many pages as it can, retrying")
        page.clock.fast_forward(31_000)
        shown.status("Waiting for the first estimate")
        served.take(estimate_of())
        shown.status("Live")
        page.clock.pause_at(page.evaluate("Date.now() + 3_600_000"))  # from here on no time passes by itself
        served.fall_silent()
        served.take(changed(estimate_of(), revision=9, reports=77))
        shown.section().locator(".reports", has_text="77").wait_for()  # the last event
        before = shown.streams()
        page.clock.fast_forward(10_000)
        assert shown.streams() == before
        with page.expect_request(re.compile("/api/events")):
            page.clock.fast_forward(6_000)
        shown.status("Live")  # again from the worker, as it was


def test_hidden_page_has_no_stream(tab: "Page", served: Served) -> None:
    served.take(estimate_of())
    with visit(tab, served.address) as shown:
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
