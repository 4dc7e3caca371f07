"""How soon a worker's page is seen in a browser without a cache."""

from typing import TYPE_CHECKING

from tests.support.aggregator.browser import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GOAL_MILLISECONDS = 200
#: When the list of collections, a first table and a second one are there; the next frame paints them.
WATCH = """
  window.seen = {};
  const first = (name, holds) => {
    if (!(name in window.seen) && holds) window.seen[name] = performance.now();
  };
  new MutationObserver(() => {
    const tables = document.querySelectorAll(".estimate:not([hidden]) tbody tr:first-child").length;
    first("list", document.querySelectorAll("#choice li").length > 0);
    first("table", tables >= 1);
    first("tables", tables >= 2);
  }).observe(document, { childList: true, subtree: true });
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def load_times(browser: "Browser", address: str) -> dict[str, float]:
    """Load the page in a new context; return milliseconds since the navigation began.

    Returns
    -------
    dict with `first_paint` (the browser's first contentful paint), `list` of collections, first `table`, and
    `tables`, the second one; and the number of `sections` that it shows.
    """
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(address)
        until(page, "'tables' in window.seen")
        until(page, f"{PAINT} !== null")
        seen: dict[str, float] = page.evaluate("window.seen")
        sections = page.locator(".collection").count()
        return {"first_paint": page.evaluate(PAINT), **seen, "sections": sections}
