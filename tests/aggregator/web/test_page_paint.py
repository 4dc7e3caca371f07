"""How soon the page is seen, in a real Chromium: 100 collections of 1,000 values."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import PICTURES, until, watched
from tests.support.aggregator.builders import T0
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

COLLECTIONS = 100
WINDOWS = 5
LOADS, MOST_LOADS = 5, 20
GOAL_MILLISECONDS = 200
#: Of the first tables, on a machine that does other things too: it catches a page that waits for all of them.
TABLES_MILLISECONDS = 2_000
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


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    set_clock(monkeypatch, T0 + 11)
    collections = crowd(COLLECTIONS)
    with Served(collections).serving() as served:
        served.take(*crowd_estimates([*collections.values()], WINDOWS))
        yield served


def is_slow(loads: list[dict[str, float]]) -> bool:
    return min(load["first_paint"] for load in loads) >= GOAL_MILLISECONDS


def test_first_paint_is_below_200_ms_with_100_collections(browser: "Browser", worker: Served) -> None:
    """The best of five loads, each in a browser context without a cache; of up to 20 if all were too slow.

    Others that share the machine only add to these times. All are kept in
    `build/pictures/first_paint.json`, in milliseconds since the navigation began.
    """
    loads = []
    while len(loads) < LOADS or (is_slow(loads) and len(loads) < MOST_LOADS):
        with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
            page = context.new_page()
            page.add_init_script(WATCH)
            page.goto(worker.address)
            until(page, "'tables' in window.seen")
            until(page, f"{PAINT} !== null")
            loads.append({"first_paint": page.evaluate(PAINT), **page.evaluate("window.seen")})
            assert page.locator("#choice li").count() == COLLECTIONS
            assert page.locator(".collection").count() < COLLECTIONS / 10
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "first_paint.json").write_text(json.dumps(loads, indent=1))
    assert not is_slow(loads), loads
    assert min(load["tables"] for load in loads) < TABLES_MILLISECONDS, loads


def test_stream_of_few_collections_is_small(browser: "Browser", worker: Served) -> None:
    """What the worker sends is that of the collections shown, not of all: 15 MB."""
    with watched(browser, f"{worker.address}#collections=shop-042") as shown:
        shown.section("shop-042").locator(".scale", has_text=f"The last {WINDOWS} windows").wait_for()
        sent = shown.page.evaluate(
            """async () => {
              const answer = await fetch("api/events?collections=shop-042");
              const reader = answer.body.getReader();
              let bytes = 0;
              for (;;) {
                const idle = new Promise((resolve) => { setTimeout(resolve, 1000, { done: true }); });
                const { done, value } = await Promise.race([reader.read(), idle]);
                if (done) return bytes;
                bytes += value.length;
              }
            }"""
        )
    assert 100_000 < sent < 400_000
