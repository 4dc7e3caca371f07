"""The axis of the bars in a real Chromium: every tick has its label, also on a phone."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from deniable.aggregator.records.estimate import EstimateRecord
from tests.support.aggregator.browser import Watched, until, visit
from tests.support.aggregator.builders import changed, estimate_of
from tests.support.aggregator.served import Served

pytestmark = pytest.mark.all

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = (320, 1280)
#: In an order in which each needs another axis than the one before: down to the smallest, and up.
HIGHEST = (1.0, 0.55, 0.3, 0.155, 0.051, 0.0021, 0.00031, 0.0123, 0.11, 0.21, 0.41, 0.9)
#: Each label's number, start, end, the width of its column, and whether it is visible; and the grid's step.
DRAWN = """() => {
  const axis = document.querySelector(".axis");
  const { left, right } = axis.getBoundingClientRect();
  const labels = Array.from(axis.children, (label) => {
    const box = label.getBoundingClientRect();
    const seen = getComputedStyle(label).visibility === "visible";
    return [Number(label.textContent), box.left - left, box.right - left, right - left, seen];
  });
  return [labels, parseFloat(axis.closest("table").style.getPropertyValue("--axis-step"))];
}"""


#: Where each row's share and interval begin and end, as drawn.
FIGURES = """() => Array.from(document.querySelectorAll("tr[data-value]"), (row) =>
  Array.from(row.querySelectorAll(".number"), (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const { left, right } = range.getBoundingClientRect();
    return [left, right];
  }))"""


def record(highest: float, revision: int) -> EstimateRecord:
    """Return an estimate whose longest bar or interval ends at `highest`."""
    return changed(
        estimate_of(),
        revision=revision,
        values=["apple", f"fig {revision:02}"],
        frequency=[highest * 0.9, highest * 0.1],
        count=[900, 100],
        low=[highest * 0.8, 0.0],
        high=[highest, highest * 0.2],
        std_error=[highest * 0.05, highest * 0.05],
        significant=[True, True],
    )


def check_axis(shown: Watched, highest: float) -> None:
    labels, grid_step = shown.page.evaluate(DRAWN)
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
    assert grid_step == pytest.approx(100 / steps)  # a line at each label, no other
    assert 0.5 <= 100 * highest / values[-1] <= 1 + 1e-9


@pytest.mark.parametrize("width", [WIDTHS[0], pytest.param(WIDTHS[1], marks=pytest.mark.nightly)])
def test_labels_are_whole_and_apart(tab: "Page", served: Served, width: int) -> None:
    """Whatever the axis ends at; and after a rotation, which leaves room for more."""
    with visit(tab, served.address, viewport={"width": width, "height": 800}) as shown:
        for revision, highest in enumerate((*HIGHEST, 0.21), 1):
            served.take(record(highest, revision))
            shown.section().locator(f'tbody tr[data-value="fig {revision:02}"]').wait_for()
            check_axis(shown, highest)
        ticks = shown.section().locator(".axis span").count()
        if width == WIDTHS[0]:
            shown.page.set_viewport_size({"width": 800, "height": width})
            until(shown.page, f"document.querySelectorAll('.axis span').length > {ticks}")
            check_axis(shown, 0.21)


def test_figures_of_a_phone_are_apart(tab: "Page", served: Served) -> None:
    """Also the widest: an interval that ends at 100."""
    with visit(tab, served.address, viewport={"width": 375, "height": 800}) as shown:
        figures = {"frequency": [0.997, 0.001], "low": [0.984, 0.0], "high": [1.0, 0.01]}
        served.take(changed(record(0.5, 1), **figures))
        shown.section().locator('tbody tr[data-value="fig 01"]').wait_for()
        rows = shown.page.evaluate(FIGURES)
        assert len(rows) == 3
        assert [row for row in rows if row[1][0] < row[0][1] + 6] == []
