"""The axis of the bars in a real Chromium: every tick has its label, also on a phone."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.support.aggregator.browser import Watched, until, watched
from tests.support.aggregator.builders import changed, estimate_of
from tests.support.aggregator.served import Served

pytestmark = pytest.mark.all

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (320, 1280)
HIGHEST = (1.0, 0.9, 0.55, 0.41, 0.3, 0.21, 0.155, 0.11, 0.051, 0.0123, 0.0021, 0.00031)
LABELS = """() => {
  const axis = document.querySelector(".axis");
  const { left, right } = axis.getBoundingClientRect();
  return Array.from(axis.children, (label) => {
    const box = label.getBoundingClientRect();
    const seen = getComputedStyle(label).visibility === "visible";
    return [Number(label.textContent), box.left - left, box.right - left, right - left, seen];
  });
}"""
GRID = """() => parseFloat(document.querySelector("table").style.getPropertyValue("--axis-step"))"""


def record(highest: float):
    """Return an estimate whose longest bar or interval ends at `highest`."""
    return changed(
        estimate_of(),
        values=["apple", "fig"],
        frequency=[highest * 0.9, highest * 0.1],
        count=[900, 100],
        low=[highest * 0.8, 0.0],
        high=[highest, highest * 0.2],
        std_error=[highest * 0.05, highest * 0.05],
        significant=[True, True],
    )


def check_axis(shown: Watched, highest: float) -> None:
    labels = shown.page.evaluate(LABELS)
    values = [value for value, *_ in labels]
    assert all(seen for *_, seen in labels)
    assert labels[-1][2] <= labels[-1][3] + 0.5  # within the column
    for (_, _, end, *_), (_, start, *_) in pairwise(labels):
        assert start >= end + 3.5, labels
    if len(values) == 1:  # for neither 0 nor the end leaves room for the other
        assert labels[0][3] < 40, labels
        values.insert(0, 0)
    steps = len(values) - 1
    assert values == pytest.approx([values[-1] * index / steps for index in range(steps + 1)], rel=1e-9)
    assert shown.page.evaluate(GRID) == pytest.approx(100 / steps)  # a line at each label, no other
    assert 0.5 <= 100 * highest / values[-1] <= 1 + 1e-9


@pytest.mark.parametrize("width", [WIDTHS[0], pytest.param(WIDTHS[1], marks=pytest.mark.nightly)])
def test_labels_are_whole_and_apart(browser: "Browser", served: Served, width: int) -> None:
    for highest in HIGHEST:
        served.take(record(highest))
        look = {"viewport": {"width": width, "height": 800}}
        with watched(browser, served.address, **look) as shown:
            shown.status("Live")
            shown.section().locator(".axis span").first.wait_for()
            check_axis(shown, highest)


def test_rotation_draws_the_axis_again(browser: "Browser", served: Served) -> None:
    served.take(record(0.21))
    with watched(browser, served.address, viewport={"width": 320, "height": 800}) as shown:
        shown.status("Live")
        ticks = shown.section().locator(".axis span")
        ticks.first.wait_for()
        narrow = ticks.count()
        check_axis(shown, 0.21)
        shown.page.set_viewport_size({"width": 800, "height": 320})
        until(shown.page, f"document.querySelectorAll('.axis span').length > {narrow}")
        check_axis(shown, 0.21)
