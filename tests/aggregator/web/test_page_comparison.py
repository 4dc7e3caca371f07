"""The comparison of two periods in a real Chromium: asked by a form or a link, drawn, and as CSV."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aggregator.history.periods import Period
from aggregator.history.window_reader import Joined
from aggregator.web import past_windows
from aggregator.web.comparison_api import Comparer, Comparisons
from aggregator.web.past_windows import PastWindows
from analysis.comparison import JoinedPeriod, check_comparable, compare_joined, compare_periods
from tests.aggregator.web.test_comparison_api import FIRST, SECOND, joined_of
from tests.support.aggregator.browser import Watched, until, watched
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COMPARED = f"fruit.compare={FIRST.start}/{FIRST.end},{SECOND.start}/{SECOND.end},0.05"


@pytest.fixture
def comparing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A worker whose topic of windows is replaced; it compares as the command does."""

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        first = Period(T0 - 7200, T0 - 3600)
        return joined_of(FIRST if period in (FIRST, first) else SECOND)

    monkeypatch.setattr(past_windows, "join_windows", join)
    set_clock(monkeypatch)
    served = Served()
    served.server.routes = Comparisons(
        PastWindows(DEPLOYMENT), Comparer(check_comparable, compare_joined)
    ).routes()
    with served.serving() as worker:
        worker.take(changed(estimate_of(), window_start=T0 - 10, window_end=T0, final=True), estimate_of())
        yield worker


def differences(shown: Watched) -> dict[str, list[str]]:
    """Return the cells of every row by value."""
    rows = shown.section().locator(".differences tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def test_form_asks_for_the_proposed_periods(browser: "Browser", comparing: Served, tmp_path: Path) -> None:
    """Up to the end of the newest final window; the figures are those of the command, and so is the CSV."""
    sides = [JoinedPeriod(period, joined_of(period)) for period in (FIRST, SECOND)]
    expected = compare_periods(FRUIT, sides[0], sides[1], 0.05)
    with watched(browser, comparing.address, accept_downloads=True) as shown:
        shown.status("Live")
        shown.section().locator(".history").wait_for()
        shown.section().get_by_text("Which shares differ").click()
        fields = shown.section().locator(".comparison input[type=datetime-local]")
        assert [field.input_value()[:16] for field in fields.all()] == [
            "2025-12-31T22:00",
            "2025-12-31T23:00",
            "2025-12-31T23:00",
            "2026-01-01T00:00",
        ]
        shown.section().get_by_role("button", name="Compare").click()
        shown.section().locator(".outcome", has_text="shares differ").wait_for()
        said = shown.section().locator(".outcome").inner_text()
        cells = differences(shown)
        with shown.page.expect_download() as found:
            shown.section().locator(".differences .save").click()
        found.value.save_as(tmp_path / "differences.csv")
        assert violations(shown.page) == []
    assert said == (
        f"{sum(expected.significant)} of 4 shares differ; of those, at most 5 % are expected to be false. "
        "First: 10,000 reports in 1 window. Second: 10,000 reports in 1 window."
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
    rows = list(csv.DictReader(io.StringIO((tmp_path / "differences.csv").read_text())))
    assert [*rows[0]] == ["value", *expected.columns()[1:]]
    for row in rows:
        place = expected.values.index(row["value"])
        assert float(row["difference"]) == expected.difference[place]


def test_link_asks_the_same_again(browser: "Browser", comparing: Served) -> None:
    """And closing the comparison takes it out of the link."""
    with watched(browser, f"{comparing.address}#{COMPARED}") as shown:
        shown.section().locator(".outcome", has_text="shares differ").wait_for()
        assert "apple" in differences(shown)
        assert shown.section().locator(".preset select").input_value() == "others"
        shown.section().get_by_text("Which shares differ").click()
        until(shown.page, "!location.hash.includes('compare')")


@pytest.mark.parametrize("width", [360, 1280])
def test_comparison_fits(browser: "Browser", comparing: Served, width: int) -> None:
    look = {"viewport": {"width": width, "height": 800}, "reduced_motion": "reduce"}
    with watched(browser, f"{comparing.address}#collections=fruit&{COMPARED}", **look) as shown:
        shown.section().locator(".outcome", has_text="shares differ").wait_for()
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        inside = shown.section().evaluate("section => section.scrollWidth <= section.clientWidth + 1")
        assert inside
        shown.keep(f"comparison-{width}")


def test_refusal_is_said(browser: "Browser", comparing: Served) -> None:
    overlapping = f"fruit.compare={FIRST.start}/{FIRST.end},{FIRST.start}/{SECOND.end},0.05"
    with watched(browser, f"{comparing.address}#{overlapping}") as shown:
        outcome = shown.section().locator(".outcome", has_text="No comparison: the periods must not overlap")
        outcome.wait_for()
        shown.wrong.clear()  # the browser's own line of the answer 400
