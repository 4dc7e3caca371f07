"""The page for everyone, in a real Chromium: axe-core finds nothing, and keys reach everything."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import DESK, PHONE, Watched, watched
from tests.support.aggregator.builders import T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.scene import (
    AIR_TIME,
    LIMITS,
    PAIR,
    SCENE,
    estimates,
    number_estimates,
    pair_estimate,
)
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
    others = {collection.fingerprint: collection for collection in (AIR_TIME, PAIR)}
    with Served(SCENE | others, LIMITS).serving() as served:
        served.take(*estimates(), *number_estimates(), pair_estimate())
        yield served


def show_all(shown: Watched) -> None:
    """Open every part that can be opened."""
    shown.status("Live")
    for name in ("carrier", "destination"):
        shown.section(name).locator(".scale", has_text="The last 38 windows").wait_for()
    for summary in shown.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    shown.section("carrier").locator(".plan .errors .then", has_text="%").wait_for()
    for direction in shown.section(PAIR.name).locator(".directions details").all():
        direction.locator("tbody td").first.wait_for()


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
    browser: "Browser",
    worker: Served,
    monkeypatch: pytest.MonkeyPatch,
    viewport: dict[str, int],
    scheme: str,
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with watched(browser, worker.address, **look) as shown:
        shown.section(PAIR.name).scroll_into_view_if_needed()  # else it is not drawn
        shown.section(PAIR.name).locator(".pair summary", has_text="by").first.wait_for()
        assert violations(shown.page) == []
        show_all(shown)
        assert violations(shown.page) == []


def test_axe_finds_nothing_among_many_collections(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, T0 + 11)
    collections = crowd(30, 100)
    with Served(collections).serving() as served:
        served.take(*crowd_estimates([*collections.values()], 2))
        with watched(browser, f"{served.address}#collections=shop-003&shop-003.search=item-00") as shown:
            shown.section("shop-003").locator(".matches", has_text="100 of 100").wait_for()
            assert violations(shown.page) == []


def test_axe_would_find_a_defect(browser: "Browser", worker: Served) -> None:
    with watched(browser, worker.address) as shown:
        shown.section("carrier").locator(".scale", has_text="The last 38 windows").wait_for()  # all is drawn
        shown.page.evaluate("document.querySelector('.search input').labels[0].firstChild.remove()")
        shown.page.evaluate("document.querySelector('.search').hidden = false")
        found = violations(shown.page)
    assert [each.split(":")[0] for each in found] == ["label"]


def test_keys_reach_everything_and_the_focus_is_seen(
    browser: "Browser", worker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, T0 + 30)
    with watched(browser, worker.address, viewport=DESK, reduced_motion="reduce") as shown:
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


def test_live_regions_are_quiet_while_estimates_arrive(browser: "Browser", served: Served) -> None:
    """A screen reader is told of no estimate that comes while nothing changes in the status."""
    served.take(estimate_of())
    with watched(browser, served.address) as shown:
        shown.status("Live")
        shown.section().locator(".reports", has_text="40").wait_for()
        shown.page.evaluate(
            """() => {
              window.spoken = [];
              const regions = document.querySelectorAll("[role=status], [role=alert], [aria-live]");
              for (const each of regions) {
                new MutationObserver(() => window.spoken.push(each.textContent))
                  .observe(each, { childList: true, characterData: true, subtree: true });
              }
            }"""
        )
        for revision in range(2, 6):
            served.take(changed(estimate_of(), revision=revision, reports=100 * revision))
            shown.section().locator(".reports", has_text=f"{100 * revision}").wait_for()
        assert shown.page.evaluate("window.spoken") == []
