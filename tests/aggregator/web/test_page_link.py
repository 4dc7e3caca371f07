"""The page's address in a real Chromium: it restores what was shown, and none of it is sent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import Watched, until, watched
from tests.support.aggregator.builders import T0, changed
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


def test_first_collections_are_shown_until_people_choose(browser: "Browser", many: Served) -> None:
    """And the worker sends estimates of these alone."""
    with watched(browser, many.address) as shown:
        shown.section(NAMES[5]).locator(".reports", has_text="1,000,000").wait_for()
        assert sections(shown) == NAMES[:6]
        assert shown.page.locator("#choice .count").inner_text() == "6 of 20 shown"
        assert shown.requests[-1].startswith("api/events?collections=")
        assert shown.requests[-1].removeprefix("api/events?collections=").split(",") == NAMES[:6]


def test_chosen_collections_are_in_the_address(browser: "Browser", many: Served) -> None:
    """Back undoes the choice; a search in the list leaves those to choose."""
    with watched(browser, many.address) as shown:
        open_list(shown)
        shown.page.get_by_role("link", name=f"Show only {NAMES[12]}").click()
        shown.section(NAMES[12]).locator(".reports", has_text="1,000,000").wait_for()
        shown.page.get_by_role("checkbox", name=NAMES[3]).check()
        shown.section(NAMES[3]).locator(".reports", has_text="1,000,000").wait_for()
        assert sections(shown) == [NAMES[3], NAMES[12]]
        assert shown.page.url.endswith(f"#collections={NAMES[3]},{NAMES[12]}")
        shown.page.go_back()
        until(shown.page, "document.querySelectorAll('.collection').length === 1")
        assert sections(shown) == [NAMES[12]]
        shown.page.get_by_label("Search collections").fill("-01")
        shown.page.get_by_role("button", name="Show the 10 found").click()
        shown.section(NAMES[19]).locator(".reports", has_text="1,000,000").wait_for()
        assert sections(shown) == NAMES[10:]


def test_address_restores_all_that_is_shown(browser: "Browser", many: Served) -> None:
    """Search, sorting, rows and window; what people search is in no request."""
    with watched(browser, f"{many.address}#collections={NAMES[7]}") as shown:
        section = shown.section(NAMES[7])
        section.get_by_label("Search values").fill("ITEM-01")
        section.get_by_role("button", name="Value").click()
        section.get_by_role("button", name="Value").click()
        section.get_by_role("button", name="Show 80 more").click()
        section.locator(".slider input").first.press("ArrowLeft")
        section.locator(".badge", has_text="Final").wait_for()
        until(shown.page, "location.hash.includes('.window=')")
        address, rows = shown.page.url, shown.rows(NAMES[7])
    assert list(rows) == [f"item-{value:04}" for value in range(199, 99, -1)]
    with watched(browser, address) as again:
        section = again.section(NAMES[7])
        section.locator(".badge", has_text="Final").wait_for()
        section.locator(".matches", has_text="“ITEM-01” is in 100 of 300 values.").wait_for()
        assert again.rows(NAMES[7]) == rows
        assert again.page.url == address
        assert section.locator("th[aria-sort=descending]").inner_text().startswith("Value")
        assert "23:59:50" in section.locator(".window").inner_text()
        assert not any("ITEM" in each or "item" in each for each in again.requests)


def test_copied_link_keeps_the_window(browser: "Browser", many: Served) -> None:
    """Of the newest one too: a link to what follows the newest would show something else later."""
    context = {"permissions": ["clipboard-read", "clipboard-write"]}
    with watched(browser, f"{many.address}#collections={NAMES[0]}", **context) as shown:
        shown.section(NAMES[0]).locator(".reports", has_text="1,000,000").wait_for()
        shown.page.get_by_role("button", name="Copy link").click()
        shown.page.locator("#copied", has_text="Copied").wait_for()
        link = shown.page.evaluate("navigator.clipboard.readText()")
        assert "window" not in shown.page.url
    assert link == f"{many.address}#collections={NAMES[0]}&{NAMES[0]}.window={T0}"
    [newest] = crowd_estimates([*CROWD.values()][:1], 1)
    many.take(changed(newest, window_start=T0 + 10, window_end=T0 + 20))
    with watched(browser, link) as again:
        section = again.section(NAMES[0])
        section.locator(".chosen", has_text="Showing the window").wait_for()
        section.locator(".reports", has_text="1,000,000").wait_for()
        assert section.locator(".window").inner_text().endswith("00:00:00 – 00:00:10 UTC")


@pytest.mark.parametrize(
    "address", ["#collections=", "#collections=absent", "#x.y=1&.search=a&shop-000.rows=-1&shop-000.window=x"]
)
def test_addresses_of_nothing_are_shown(browser: "Browser", many: Served, address: str) -> None:
    """With a sentence that says so."""
    with watched(browser, f"{many.address}{address}") as shown:
        shown.status("Live")
        said = shown.page.locator("#absent").inner_text()
    expected = {
        "#collections=": "No collection is chosen: choose some in the list.",
        "#collections=absent": "This worker has no collection named absent.",
    }
    assert said == expected.get(address, "")
