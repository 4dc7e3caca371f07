"""Pictures of the page on desktop and phone, light and dark, saved in `build/pictures`; the page must fit."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import PICTURES, watched
from tests.support.aggregator.builders import T0
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.scene import (
    AIR_TIME,
    CARRIERS,
    LIMITS,
    MISSING,
    PAIR,
    SCENE,
    WINDOWS,
    estimates,
    number_estimates,
    pair_estimate,
)
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 800}


@pytest.fixture(scope="module")
def worker() -> Iterator[Served]:
    with Served(SCENE, LIMITS).serving() as served:
        served.take(*estimates())
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "viewport"), [("desk", DESK), ("phone", PHONE)])
def test_page_fits_and_picture_is_saved(
    browser: "Browser",
    worker: Served,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    viewport: dict[str, int],
    scheme: str,
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with watched(browser, worker.address, **look) as shown:
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "viewport"), [("desk", DESK), ("phone", PHONE)])
def test_number_fits_and_picture_is_saved(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch, name: str, viewport: dict[str, int], scheme: str
) -> None:
    set_clock(monkeypatch, T0 + 30)
    look = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce"}
    with Served({AIR_TIME.fingerprint: AIR_TIME}).serving() as served:
        served.take(*number_estimates())
        with watched(browser, served.address, **look) as shown:
            shown.status("Live")
            shown.section("air-time").locator(".density .mean", has_text="Mean 15").wait_for()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"number-{name}-{scheme}")
    assert (PICTURES / f"number-{name}-{scheme}.png").stat().st_size > 20_000


@pytest.mark.parametrize(("name", "viewport"), [("desk", DESK), ("phone", PHONE)])
def test_pair_fits_and_picture_is_saved(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch, name: str, viewport: dict[str, int]
) -> None:
    """Its table scrolls by itself; the heads of its columns end where the figures do."""
    set_clock(monkeypatch, T0 + 30)
    look = {"viewport": viewport, "color_scheme": "light", "reduced_motion": "reduce"}
    with Served({PAIR.fingerprint: PAIR}).serving() as served:
        served.take(pair_estimate())
        with watched(browser, served.address, **look) as shown:
            shown.status("Live")
            pair = shown.section(PAIR.name).locator(".pair")
            pair.locator("summary").click()
            ends = pair.evaluate(
                """pair => ["thead th:nth-child(3)", "tbody td:nth-child(3)"].map((cell) => {
                  const range = document.createRange();
                  range.selectNodeContents(pair.querySelector(cell));
                  return range.getBoundingClientRect().right;
                })"""
            )
            assert ends[0] == pytest.approx(ends[1], abs=1)
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"pair-{name}")


@pytest.mark.parametrize(("name", "viewport"), [("desk", DESK), ("phone", PHONE)])
def test_many_collections_fit_and_picture_is_saved(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch, name: str, viewport: dict[str, int]
) -> None:
    set_clock(monkeypatch, T0 + 11)
    collections = crowd(40)
    look = {"viewport": viewport, "color_scheme": "light", "reduced_motion": "reduce"}
    with Served(collections).serving() as served:
        served.take(*crowd_estimates([*collections.values()], 3))
        address = f"{served.address}#collections=shop-003,shop-004&shop-003.search=item-00"
        with watched(browser, address, **look) as shown:
            shown.section("shop-003").locator(".matches", has_text="100 of").wait_for()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"many-{name}")
