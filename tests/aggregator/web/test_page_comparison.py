"""The comparison of two periods in a real Chromium: asked by a form or a link, drawn, and as CSV.

Which periods are proposed is tested in Node, too: see page/format.test.mjs.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.web import past_windows
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.analysis.comparison import JoinedPeriod, check_comparable, compare_joined, compare_periods
from deniable.analysis.tables.record_table import columns_of
from tests.aggregator.web.test_comparison_api import FIRST, SECOND, joined_of
from tests.support.aggregator.browser import PHONE, Watched, until, visit
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

COMPARED = f"fruit.compare={FIRST.start}/{FIRST.end},{SECOND.start}/{SECOND.end},0.05"
#: Final windows of 10 s before the newest.
KNOWN = (0, 2, 7)
#: Of an element's text.
BOXES = """element => {
  const text = document.createRange();
  text.selectNodeContents(element);
  return text.getClientRects().length;
}"""


@pytest.fixture
def comparing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A worker whose topic of windows is replaced; it compares as the command does."""

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        first = Period(T0 - 7200, T0 - 3600)
        if period in (FIRST, first):
            return joined_of(FIRST)
        return replace(joined_of(SECOND), others={1: 2})

    monkeypatch.setattr(past_windows, "join_windows", join)
    set_clock(monkeypatch)
    served = Served()
    served.server.routes = Comparisons(
        PastWindows(DEPLOYMENT), Comparer(check_comparable, compare_joined)
    ).routes()
    with served.serving() as worker:
        worker.take(*(final_window(before) for before in KNOWN), estimate_of())
        yield worker


def final_window(before: int) -> EstimateRecord:
    """Build the estimate of the final window so many windows before the one that ends at T0."""
    end = T0 - 10 * before
    return changed(estimate_of(), window_start=end - 10, window_end=end, final=True)


def differences(shown: Watched) -> dict[str, list[str]]:
    """Return the cells of every row by value."""
    rows = shown.section().locator(".differences tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def fields_of(shown: Watched) -> list[str]:
    """Return the times of day in the fields of the form."""
    fields = shown.section().locator(".comparison input[type=datetime-local]").all()
    return [f"{field.input_value()[11:]}:00"[:8] for field in fields]


@pytest.mark.all
def test_form_proposes_periods_and_asks_for_them(tab: "Page", comparing: Served, tmp_path: Path) -> None:
    """Up to the end of the newest final window; the figures are those of the command, and so is the CSV.

    One window of other parameters counts for no proposal. Closing the comparison takes it out of the link.
    """
    comparing.take(changed(final_window(5000), fingerprint="0" * 16, epsilon=1.0))
    with visit(tab, comparing.address, reduced_motion="reduce") as shown:
        shown.section().locator(".scale", has_text=f"The last {len(KNOWN) + 2} windows").wait_for()
        shown.section().get_by_text("Which shares differ").click()
        titles = shown.section().locator(".preset option").all_inner_texts()
        assert titles[0] == "The last 40 seconds, and the 40 seconds before"
        assert fields_of(shown) == ["23:58:40", "23:59:20", "23:59:20", "00:00:00"]
        shown.section().locator(".preset select").select_option("hour")
        assert fields_of(shown) == ["22:00:00", "23:00:00", "23:00:00", "00:00:00"]
        shown.section().get_by_role("button", name="Compare").click()
        shown.section().locator(".outcome", has_text="shares differ").wait_for()
        check_figures(shown, tmp_path / "differences.csv")
        assert violations(shown.page) == []
        check_fit(shown)
        until(shown.page, "location.hash.includes('compare')")
        shown.section().get_by_text("Which shares differ").click()
        until(shown.page, "!location.hash.includes('compare')")


def check_figures(shown: Watched, path: Path) -> None:
    sides = [JoinedPeriod(period, joined_of(period)) for period in (FIRST, SECOND)]
    expected = compare_periods(FRUIT, sides[0], sides[1], 0.05)
    said = shown.section().locator(".outcome").inner_text()
    cells = differences(shown)
    with shown.page.expect_download() as found:
        shown.section().locator(".differences .save").click()
    found.value.save_as(path)
    assert said == (
        f"{sum(expected.significant)} of 4 shares differ; of those, at most 5 % are expected to be false. "
        "The test allows for the randomizers’ noise alone: where other people report in each period, "
        "shares may differ although nobody changed. First: 10,000 reports in 1 window of 360. Second: 10,000 "
        "reports in 1 window of 360, 2 windows of other parameters left out."
    )
    place = expected.values.index("apple")
    low, high = (f"{100 * each[place]:+.1f}" for each in (expected.low, expected.high))
    first, second = (f"{100 * each[place]:.1f}" for each in (expected.first_share, expected.second_share))
    assert cells["apple"][1:4] == [
        f"{first} → {second}",
        f"{100 * expected.difference[place]:+.1f}",
        f"{low} to {high}",
    ]
    assert [*cells] == sorted(expected.values, key=lambda name: expected.p_value[expected.values.index(name)])
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [*rows[0]] == ["value", *columns_of(expected)[1:]]
    for row in rows:
        place = expected.values.index(row["value"])
        assert float(row["difference"]) == expected.difference[place]


def check_fit(shown: Watched) -> None:
    """On a desk and on a phone; no value's name is broken into lines."""
    for size in (shown.page.viewport_size, PHONE):
        assert size is not None
        shown.page.set_viewport_size(size)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert shown.section().evaluate("section => section.scrollWidth <= section.clientWidth + 1")
        names = shown.section().locator(".differences tbody .value")
        assert "(other)" in names.all_inner_texts()
        for name in names.all():  # a broken word has a box for each line
            assert name.evaluate(BOXES) == 1
        shown.keep(f"comparison-{size['width']}")


def test_link_asks_the_same_again(tab: "Page", comparing: Served) -> None:
    """And one whose periods overlap is refused, with the reason."""
    with visit(tab, f"{comparing.address}#{COMPARED}", refused=[400]) as shown:
        outcome = shown.section().locator(".outcome")
        outcome.filter(has_text="shares differ").wait_for()
        assert "apple" in differences(shown)
        assert shown.section().locator(".preset select").input_value() == "others"
        overlapping = f"fruit.compare={FIRST.start}/{FIRST.end},{FIRST.start}/{SECOND.end},0.05"
        shown.page.evaluate(f"location.hash = '{overlapping}'")
        outcome.filter(has_text="No comparison: the periods must not overlap").wait_for()
