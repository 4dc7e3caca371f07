"""The page for everyone, in a real Chromium: axe-core finds nothing, and keys reach everything."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.aggregator.browser import DESK, PHONE, Watched, visit
from tests.support.aggregator.builders import T0
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.scene import (
    DELAY,
    LIMITS,
    PAIR,
    SCENE,
    delay_estimates,
    estimates,
    pair_estimate,
)
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

WINDOWS = 6
#: What may have the focus, in the order of the page, without what is hidden.
REACHABLE = """() => Array.from(
  document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']"),
).filter((each) => each.checkVisibility() && !each.disabled).length"""
FOCUSED = """() => {
  const { activeElement: focused } = document;
  if (focused === document.body) return null;
  const box = focused.getBoundingClientRect();
  const { outlineStyle } = getComputedStyle(focused);
  const inSight = box.bottom > 0 && box.top < innerHeight;
  window.places ??= new Map();
  if (!window.places.has(focused)) window.places.set(focused, window.places.size);
  return { place: window.places.get(focused), outlineStyle, inSight, tag: focused.outerHTML.slice(0, 100) };
}"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Served]:
    others = {collection.fingerprint: collection for collection in (DELAY, PAIR)}
    with Served(SCENE | others, LIMITS).serving() as served:
        served.take(*estimates(WINDOWS), *delay_estimates(), pair_estimate())
        yield served


def show_all(shown: Watched) -> None:
    """Open every part that can be opened."""
    shown.status("Live")
    for name in ("carrier", "destination"):
        shown.section(name).locator(".scale", has_text=f"The last {WINDOWS} windows").wait_for()
    for summary in shown.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    shown.section("carrier").locator(".plan .errors .then", has_text="%").wait_for()
    for direction in shown.section(PAIR.name).locator(".directions details").all():
        direction.locator("tbody td").first.wait_for()


@pytest.mark.all
@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(DESK, "light", id="desk-light"),
        pytest.param(PHONE, "dark", id="phone-dark", marks=pytest.mark.nightly),
        pytest.param(DESK, "dark", id="desk-dark", marks=pytest.mark.nightly),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.nightly),
    ],
)
def test_axe_finds_nothing(
    tab: "Page", worker: Served, monkeypatch: pytest.MonkeyPatch, viewport: Any, scheme: Any
) -> None:
    """Neither at first nor with all parts open; and it would find a field without a label."""
    set_clock(monkeypatch, T0 + 30)
    with visit(tab, worker.address, viewport=viewport, color_scheme=scheme, reduced_motion="reduce") as shown:
        shown.section(PAIR.name).scroll_into_view_if_needed()  # else it is not drawn
        shown.section(PAIR.name).locator(".pair summary", has_text="by").first.wait_for()
        assert violations(shown.page) == []
        show_all(shown)
        assert violations(shown.page) == []
        shown.page.evaluate("document.querySelector('.search input').labels[0].firstChild.remove()")
        shown.page.evaluate("document.querySelector('.search').hidden = false")
        assert [each.split(":")[0] for each in violations(shown.page, ".search")] == ["label"]


def test_keys_reach_everything_and_the_focus_is_seen(
    tab: "Page", worker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, T0 + 30)
    with visit(tab, worker.address, reduced_motion="reduce") as shown:
        show_all(shown)
        expected = shown.page.evaluate(REACHABLE)
        shown.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        reached = set()
        for _ in range(3 * expected):
            shown.page.keyboard.press("Tab")
            focused = shown.page.evaluate(FOCUSED)
            if focused is None:  # the browser's own controls are between the last and the first
                continue
            reached.add(focused["place"])
            assert focused["outlineStyle"] != "none", focused
            assert focused["inSight"], focused
            if len(reached) == expected:
                break
    assert len(reached) == expected
