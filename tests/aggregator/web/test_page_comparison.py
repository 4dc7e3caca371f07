"""The comparison of two periods in a real Chromium: asked by a form or a link, drawn, and as CSV."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aggregator.estimation import window_estimate
from aggregator.history.periods import Period
from aggregator.history.window_reader import Joined
from aggregator.records.estimate import EstimateRecord
from aggregator.records.window_counts import WindowCounts
from aggregator.web import past_windows
from aggregator.web.comparison_api import Comparer, Comparisons
from aggregator.web.past_windows import PastWindows
from analysis.comparison import JoinedPeriod, check_comparable, compare_joined, compare_periods
from estimators.collection import Collection, GrowthRule
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.aggregator.web.test_comparison_api import FIRST, SECOND, joined_of
from tests.support.aggregator.browser import Watched, until, watched
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COMPARED = f"fruit.compare={FIRST.start}/{FIRST.end},{SECOND.start}/{SECOND.end},0.05"
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
        worker.take(changed(estimate_of(), window_start=T0 - 10, window_end=T0, final=True), estimate_of())
        yield worker


def differences(shown: Watched) -> dict[str, list[str]]:
    """Return the cells of every row by value."""
    rows = shown.section().locator(".differences tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def fields_of(shown: Watched) -> list[str]:
    """Return the times of day in the fields of the form."""
    fields = shown.section().locator(".comparison input[type=datetime-local]").all()
    return [f"{field.input_value()[11:]}:00"[:8] for field in fields]


@pytest.mark.parametrize(
    ("known", "title", "fields"),
    [
        (
            [0],
            "The last 10 seconds, and the 10 seconds before",
            ["23:59:40", "23:59:50", "23:59:50", "00:00:00"],
        ),
        (
            [0, 2, 7],
            "The last 40 seconds, and the 40 seconds before",
            ["23:58:40", "23:59:20", "23:59:20", "00:00:00"],
        ),
        (
            [0, 29],
            "The last 2 minutes, and the 2 minutes before",
            ["23:56:00", "23:58:00", "23:58:00", "00:00:00"],
        ),
        ([0, 719], "The last hour, and the hour before", ["22:00:00", "23:00:00", "23:00:00", "00:00:00"]),
    ],
)
def test_form_proposes_periods_that_known_windows_cover(
    browser: "Browser", served: Served, known: list[int], title: str, fields: list[str]
) -> None:
    """`known`: final windows of 10 s before the newest. One of other parameters does not count."""
    served.take(*(final_window(before) for before in known), estimate_of())
    served.take(changed(final_window(5000), fingerprint="0" * 16, epsilon=1.0))
    with watched(browser, served.address) as shown:
        shown.section().locator(".scale", has_text=f"The last {len(known) + 2} windows").wait_for()
        shown.section().get_by_text("Which shares differ").click()
        titles = shown.section().locator(".preset option").all_inner_texts()
        assert titles[0] == title
        assert "The last hour, and the hour before" in titles[:2]
        assert fields_of(shown) == fields


def final_window(before: int) -> EstimateRecord:
    """Build the estimate of the final window so many windows before the one that ends at T0."""
    end = T0 - 10 * before
    return changed(estimate_of(), window_start=end - 10, window_end=end, final=True)


def test_form_asks_for_the_proposed_periods(browser: "Browser", comparing: Served, tmp_path: Path) -> None:
    """Up to the end of the newest final window; the figures are those of the command, and so is the CSV."""
    sides = [JoinedPeriod(period, joined_of(period)) for period in (FIRST, SECOND)]
    expected = compare_periods(FRUIT, sides[0], sides[1], 0.05)
    with watched(browser, comparing.address, accept_downloads=True) as shown:
        shown.status("Live")
        shown.section().locator(".history").wait_for()
        shown.section().get_by_text("Which shares differ").click()
        shown.section().locator(".preset select").select_option("hour")
        assert fields_of(shown) == ["22:00:00", "23:00:00", "23:00:00", "00:00:00"]
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
    rows = list(csv.DictReader(io.StringIO((tmp_path / "differences.csv").read_text())))
    assert [*rows[0]] == ["value", *expected.columns()[1:]]
    for row in rows:
        place = expected.values.index(row["value"])
        assert float(row["difference"]) == expected.difference[place]


def test_comparison_without_candidates_says_so(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of counting no share, and of a table without rows."""
    mechanism = PrefixTree.from_epsilon((2, 3), 4.0)
    text = Collection("text", mechanism, window_seconds=10, growth=GrowthRule(2, 0.05))
    even = np.full((2, text.width), 500)
    counts = WindowCounts(even, even.sum(axis=1), 1, 0)

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        return Joined(counts, {period.start: counts.reports}, [], {}, 0)

    monkeypatch.setattr(past_windows, "join_windows", join)
    set_clock(monkeypatch)
    served = Served({text.fingerprint: text})
    past = PastWindows(DEPLOYMENT._replace(collections={text.fingerprint: text}))
    served.server.routes = Comparisons(past, Comparer(check_comparable, compare_joined)).routes()
    with served.serving() as worker:
        result = window_estimate.estimate(text, counts)
        worker.take(window_estimate.record_of(text, T0, counts, result, final=True))
        with watched(browser, f"{worker.address}#{COMPARED.replace('fruit', 'text')}") as shown:
            outcome = shown.section("text").locator(".outcome", has_text="No candidates are listed")
            outcome.wait_for()
            assert outcome.inner_text().startswith(
                "No candidates are listed in the collection file, so no shares are compared: deniable decode "
                "text --grow, for each of two periods, shows which texts were frequent then. First: "
            )
            assert shown.section("text").locator(".differences").is_hidden()


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
        names = shown.section().locator(".differences tbody .value")
        assert "(other)" in names.all_inner_texts()
        for name in names.all():  # a broken word has a box for each line
            assert name.evaluate(BOXES) == 1
        shown.keep(f"comparison-{width}")


def test_refusal_is_said(browser: "Browser", comparing: Served) -> None:
    overlapping = f"fruit.compare={FIRST.start}/{FIRST.end},{FIRST.start}/{SECOND.end},0.05"
    with watched(browser, f"{comparing.address}#{overlapping}", refused=400) as shown:
        outcome = shown.section().locator(".outcome", has_text="No comparison: the periods must not overlap")
        outcome.wait_for()
