"""The page must fit on desktop and phone; pictures of it, light and dark, are saved in `build/pictures`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.views.former_estimates import FormerEstimates
from deniable.aggregator.web import past_windows, rollup_api
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from tests.support.aggregator.browser import DESK, PHONE, PICTURES, Watched, visit
from tests.support.aggregator.builders import DEPLOYMENT, T0
from tests.support.aggregator.page.changed import NOW, SHOWN, ChangedCarriers
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.scene import (
    AIR_TIME,
    CARRIER,
    CARRIERS,
    DELAY,
    LIMITS,
    MISSING,
    PAIR,
    SCENE,
    WINDOWS,
    asked_twice,
    delay_estimates,
    estimates,
    number_estimates,
    pair_estimate,
)
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

on_both = pytest.mark.parametrize(("name", "viewport"), [("desk", DESK), ("phone", PHONE)])
COLUMNS = """pair => ["thead th:nth-child(3)", "tbody td:nth-child(3)"].map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(pair.querySelector(cell));
  return range.getBoundingClientRect().right;
})"""


def test_sections_fit_on_desk_and_phone(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each other they end together: the chart of a number takes the room beside a taller section.

    At most 640 pixels; on a phone it has its usual 144.
    """
    set_clock(monkeypatch, T0 + 30)
    shown_ones = (CARRIER, DELAY, PAIR)
    with Served({each.fingerprint: each for each in shown_ones}).serving() as served:
        of_carriers = (each for each in estimates(6) if each.collection == "carrier")
        served.take(*of_carriers, *delay_estimates(), pair_estimate())
        with visit(tab, served.address, reduced_motion="reduce") as shown:
            shown.section("carrier").locator(".panel").first.wait_for()
            delay = shown.section("delay")
            delay.locator(".density .mean", has_text="Mean").wait_for()
            chart = delay.locator(".outline")
            assert 300 < height(chart) <= 640
            ends = [box["y"] + box["height"] for box in map(box_of, map(shown.section, ("carrier", "delay")))]
            assert ends[0] == pytest.approx(ends[1], abs=1)
            shown.section("carrier").get_by_text("What if").click()
            shown.section("carrier").locator(".plan .errors .then", has_text="%").wait_for()
            open_pair(shown)
            for size in (DESK, PHONE):
                shown.page.set_viewport_size(size)
                assert shown.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
                check_pair(shown, size["width"])
            assert height(chart) == 144


def box_of(part: Any) -> dict[str, float]:
    box: dict[str, float] | None = part.bounding_box()
    assert box is not None
    return box


def height(part: Any) -> float:
    return box_of(part)["height"]


def open_pair(shown: Watched) -> None:
    pair = shown.section(PAIR.name).locator(".pair")
    shown.section(PAIR.name).scroll_into_view_if_needed()  # else it is not drawn
    pair.locator("summary", has_text="by").first.wait_for()
    for summary in pair.locator("summary").all():
        summary.click()
    pair.locator(".directions details:nth-child(2) tbody td").first.wait_for()


def check_pair(shown: Watched, width: int) -> None:
    """Its tables scroll by themselves; the heads of its columns end where the figures do."""
    pair = shown.section(PAIR.name).locator(".pair")
    ends = pair.evaluate(COLUMNS)
    assert ends[0] == pytest.approx(ends[1], abs=1)
    caption = box_of(pair.locator(".directions details:nth-child(2) caption"))
    assert caption["x"] + caption["width"] <= width


@pytest.fixture(scope="module")
def worker() -> Iterator[Served]:
    with Served(SCENE, LIMITS).serving() as served:
        served.take(*estimates())
        yield served


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@on_both
def test_page_fits_and_picture_is_saved(
    tab: "Page",
    worker: Served,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    viewport: Any,
    scheme: Any,
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look: dict[str, Any] = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with visit(tab, worker.address, **look) as shown:
        shown.status("Live")
        carrier = shown.section("carrier")
        carrier.locator(".scale", has_text=f"The last {WINDOWS - len(MISSING)} windows").wait_for()
        carrier.get_by_text("What if").click()
        carrier.locator(".plan .errors .then", has_text="%").wait_for()
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert len(shown.rows("carrier")) <= len(CARRIERS)
        line = carrier.locator(".panel").first.locator("path").nth(2).get_attribute("d") or ""
        assert line.count("M") == 2  # gaps at the missing windows
        shown.keep(f"{name}-{scheme}")
    assert (PICTURES / f"{name}-{scheme}.png").stat().st_size > 50_000


@pytest.mark.nightly
@on_both
def test_shares_so_far_fit_and_picture_is_saved(
    tab: "Page", monkeypatch: pytest.MonkeyPatch, name: str, viewport: Any
) -> None:
    """Across a change of list and epsilon, which the history marks, too."""
    changed = ChangedCarriers()

    async def join(*_: object) -> Joined:
        return changed.joined()

    async def read(_: object, __: object, reading: FormerEstimates) -> None:
        changed.fill(reading)

    monkeypatch.setattr(past_windows, "join_windows", join)
    monkeypatch.setattr(rollup_api, "read_former_estimates", read)
    set_clock(monkeypatch, T0 + 30)
    served = Served({NOW.fingerprint: NOW})
    served.server.routes = RollUps(
        PastWindows(DEPLOYMENT._replace(collections={NOW.fingerprint: NOW}))
    ).routes()
    with served.serving():
        served.take(*changed.shown())
        with visit(tab, served.address, viewport=viewport, reduced_motion="reduce") as shown:
            shown.status("Live")
            carrier = shown.section("carrier")
            carrier.locator(".scale", has_text=f"The last {SHOWN} windows").wait_for()
            carrier.get_by_text("What are the shares over all windows so far?").click()
            carrier.locator(".so-far").get_by_role("button", name="Show", exact=True).click()
            carrier.locator(".parts li", has_text="B6").wait_for()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"so-far-{name}")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@on_both
def test_number_fits_and_picture_is_saved(
    tab: "Page", monkeypatch: pytest.MonkeyPatch, name: str, viewport: Any, scheme: Any
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look: dict[str, Any] = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with Served({AIR_TIME.fingerprint: AIR_TIME}).serving() as served:
        served.take(*number_estimates())
        with visit(tab, served.address, **look) as shown:
            shown.status("Live")
            shown.section("air-time").locator(".density .mean", has_text="Mean 15").wait_for()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"number-{name}-{scheme}")
    assert (PICTURES / f"number-{name}-{scheme}.png").stat().st_size > 20_000


@pytest.mark.nightly
@on_both
def test_pair_fits_and_picture_is_saved(
    tab: "Page", monkeypatch: pytest.MonkeyPatch, name: str, viewport: Any
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look: dict[str, Any] = {"viewport": viewport, "color_scheme": "light", "reduced_motion": "reduce"}
    with Served({PAIR.fingerprint: PAIR}).serving() as served:
        served.take(pair_estimate())
        with visit(tab, served.address, **look) as shown:
            shown.status("Live")
            open_pair(shown)
            check_pair(shown, viewport["width"])
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"pair-{name}")


@pytest.mark.all
def test_local_hashing_has_narrower_intervals_than_rappor(
    tab: "Page", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same flights at the same epsilon; both intervals of a value are drawn side by side.

    Each width is taken from the rows that the page shows.
    """
    set_clock(monkeypatch, T0 + 100)
    asked = asked_twice()
    with Served({collection.fingerprint: collection for collection, _ in asked}).serving() as served:
        served.take(*(record for _, record in asked))
        with visit(tab, served.address, viewport=DESK, reduced_motion="reduce") as shown:
            shown.status("Live")
            widths = []
            for collection, _ in asked:
                shown.section(collection.name).locator(".estimate tr[data-value]").first.wait_for()
                rows = shown.rows(collection.name)
                widths.append({value: _width(cells[-1]) for value, cells in rows.items()})
            of_both = widths[0].keys() & widths[1].keys() - {"other"}
            assert len(of_both) >= 8
            ratios = [widths[1][value] / widths[0][value] for value in of_both]
            assert max(ratios) < 1
            assert float(np.median(ratios)) < 0.85
            shown.keep("asked-twice")


def _width(interval: str) -> float:
    low, high = interval.split(" – ")
    return float(high) - float(low)


@pytest.mark.nightly
@on_both
def test_many_collections_fit_and_picture_is_saved(
    tab: "Page", monkeypatch: pytest.MonkeyPatch, name: str, viewport: Any
) -> None:
    set_clock(monkeypatch, T0 + 11)
    collections = crowd(40)
    look: dict[str, Any] = {"viewport": viewport, "color_scheme": "light", "reduced_motion": "reduce"}
    with Served(collections).serving() as served:
        served.take(*crowd_estimates([*collections.values()], 3))
        address = f"{served.address}#collections=shop-003,shop-004&shop-003.search=item-00"
        with visit(tab, address, **look) as shown:
            shown.section("shop-003").locator(".matches", has_text="100 of").wait_for()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"many-{name}")
