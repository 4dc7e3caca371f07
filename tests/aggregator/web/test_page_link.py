"""The page's address in a real Chromium: it restores what was shown, and none of it is sent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import DESK, Watched, until, visit
from tests.support.aggregator.builders import T0, changed
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

CROWD = crowd(20, 300)
NAMES = [collection.name for collection in CROWD.values()]
WINDOWS = 5


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    set_clock(monkeypatch, T0 + 11)
    with Served(CROWD).serving() as worker:
        worker.take(*crowd_estimates([*CROWD.values()], WINDOWS))
        yield worker


def sections(shown: Watched) -> list[str]:
    """Return the names of the sections, in order."""
    return shown.page.locator(".collection h2").all_inner_texts()


def open_list(shown: Watched) -> None:
    """Show the list of collections, which is closed on a narrow page."""
    details = shown.page.locator("#choice details")
    if details.get_attribute("open") is None:
        details.locator("summary").click()


def wait_for(shown: Watched, name: str) -> None:
    """Wait until the newest estimate of a collection is shown."""
    shown.section(name).locator(".reports", has_text="1,000,000").wait_for()


def test_chosen_collections_are_in_the_address(tab: "Page", many: Served) -> None:
    """The first ones are shown until people choose; the worker sends estimates of the shown ones alone.

    Back undoes a choice; a search in the list leaves those to choose. An address of nothing says so.
    """
    with visit(tab, many.address) as shown:
        wait_for(shown, NAMES[5])
        assert sections(shown) == NAMES[:6]
        assert shown.page.locator("#choice .count").inner_text() == "6 of 20 shown"
        assert shown.requests[-1].startswith("api/events?collections=")
        assert shown.requests[-1].removeprefix("api/events?collections=").split(",") == NAMES[:6]
        open_list(shown)
        shown.page.get_by_role("link", name=f"Show only {NAMES[12]}").click()
        wait_for(shown, NAMES[12])
        shown.page.get_by_role("checkbox", name=NAMES[3]).check()
        wait_for(shown, NAMES[3])
        assert sections(shown) == [NAMES[3], NAMES[12]]
        assert shown.page.url.endswith(f"#collections={NAMES[3]},{NAMES[12]}")
        shown.page.go_back()
        until(shown.page, "document.querySelectorAll('.collection').length === 1")
        assert sections(shown) == [NAMES[12]]
        shown.page.get_by_label("Search collections").fill("-01")
        shown.page.get_by_role("button", name="Show the 10 found").click()
        wait_for(shown, NAMES[19])
        assert sections(shown) == NAMES[10:]
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= DESK["width"]
        nothing = "No collection is chosen: choose some in the list."
        for address, said in (
            ("collections=", nothing),
            ("collections=absent", "This worker has no collection named absent."),
            ("x.y=1&.search=a&shop-000.rows=-1&shop-000.window=x", ""),
        ):
            shown.page.evaluate(f"location.hash = '{address}'")
            until(shown.page, f"document.querySelector('#absent').textContent === '{said}'")
        wait_for(shown, NAMES[0])
        shown.status("Live")


@pytest.mark.all
def test_address_restores_all_that_is_shown(tab: "Page", many: Served) -> None:
    """Search, sorting, rows and window; what people search is in no request."""
    with visit(tab, f"{many.address}#collections={NAMES[7]}") as shown:
        section = shown.section(NAMES[7])
        section.get_by_label("Search values").fill("ITEM-01")
        section.locator(".matches", has_text="“ITEM-01” is in 100 of 300 values.").wait_for()
        section.get_by_role("button", name="Value").click()
        section.get_by_role("button", name="Value").click()
        section.get_by_role("button", name="Show 80 more").click()
        section.locator(".slider input").first.press("ArrowLeft")
        section.locator(".badge", has_text="Final").wait_for()
        until(shown.page, "location.hash.includes('.window=')")
        address, rows = shown.page.url, shown.rows(NAMES[7])
    assert list(rows) == [f"item-{value:04}" for value in range(199, 99, -1)]
    with visit(tab, address) as again:
        section = again.section(NAMES[7])
        section.locator(".badge", has_text="Final").wait_for()
        section.locator(".matches", has_text="“ITEM-01” is in 100 of 300 values.").wait_for()
        assert again.rows(NAMES[7]) == rows
        assert again.page.url == address
        assert section.locator("th[aria-sort=descending]").inner_text().startswith("Value")
        assert "23:59:50" in section.locator(".window").inner_text()
        assert not any("ITEM" in each or "item" in each for each in again.requests)


@pytest.mark.nightly
def test_axe_finds_nothing_in_a_search(tab: "Page", many: Served) -> None:
    with visit(tab, f"{many.address}#collections={NAMES[7]}&{NAMES[7]}.search=ITEM-01") as shown:
        shown.section(NAMES[7]).locator(".matches", has_text="“ITEM-01” is in 100 of").wait_for()
        assert violations(shown.page) == []


def test_copied_link_keeps_the_window(tab: "Page", many: Served) -> None:
    """Of the newest one too: a link to what follows the newest would show something else later."""
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visit(tab, f"{many.address}#collections={NAMES[0]}") as shown:
        wait_for(shown, NAMES[0])
        shown.page.get_by_role("button", name="Copy link").click()
        shown.page.locator("#copied", has_text="Copied").wait_for()
        link = shown.page.evaluate("navigator.clipboard.readText()")
        assert "window" not in shown.page.url
    assert link == f"{many.address}#collections={NAMES[0]}&{NAMES[0]}.window={T0}"
    [newest] = crowd_estimates([*CROWD.values()][:1], 1)
    many.take(changed(newest, window_start=T0 + 10, window_end=T0 + 20))
    with visit(tab, link) as again:
        section = again.section(NAMES[0])
        section.locator(".chosen", has_text="Showing the window").wait_for()
        wait_for(again, NAMES[0])
        assert section.locator(".window").inner_text().endswith("00:00:00 – 00:00:10 UTC")
