"""The page in a real Chromium: status of the worker and drawn estimates."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.records.estimate import EstimateRecord, Other
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from tests.support.aggregator.browser import Watched, visit
from tests.support.aggregator.builders import COLLECTIONS, PLACE, T0, changed, estimate_of
from tests.support.aggregator.served import FRESH, Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=alert(1)>"
NOISY = changed(
    estimate_of(),
    values=[HOSTILE, "fig", "kiwi", "lime"],
    frequency=[0.5, 0.2, 0.0, 0.00001],
    count=[617, 246.8, 0.0, 0.01],
    low=[0.4, 0.0, 0.0, 0.0],
    high=[0.7, 0.31, 0.0, 0.0002],
    std_error=[0.05, 0.05, None, 0.05],
    significant=[True, True, True, False],
    other=Other(0.3, 0.4, 0.0, 0.971),
    reports=1234,
)
#: Value, width of the chart, width of the bar, start and length of the line, in pixels.
MEASURE = """() => Array.from(document.querySelectorAll("tbody tr[data-value]"), (row) => {
  const plot = row.querySelector(".plot");
  const [bar, line] = ["::before", "::after"].map((part) => getComputedStyle(plot, part));
  const lengths = [bar.width, line.left, line.width].map((length) => parseFloat(length));
  return [row.dataset.value, plot.clientWidth, ...lengths];
})"""
#: Notes what screen readers announce.
LISTEN = """() => {
  window.spoken = [];
  for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]")) {
    new MutationObserver(() => window.spoken.push(region.textContent))
      .observe(region, { childList: true, characterData: true, subtree: true });
  }
}"""


def test_estimates_arrive_without_a_reload(tab: "Page", served: Served) -> None:
    """A screen reader is told of no estimate that comes while nothing changes in the status."""
    with visit(tab, served.address) as shown:
        shown.status("Waiting for the first estimate")
        names = [each.name for each in COLLECTIONS.values()]
        assert shown.page.locator("h2").all_inner_texts() == [*names, "How to read this"]
        before = shown.streams()
        waiting = shown.section().locator(".waiting").inner_text()
        assert "a window is published once it has 6 reports" in waiting
        shown.page.evaluate("window.kept = true")
        served.take(changed(estimate_of(), reports=100))
        shown.status("Live")
        shown.section().locator(".reports", has_text="100").wait_for()
        shown.page.evaluate(LISTEN)
        for revision, final in ((2, False), (3, False), (4, True)):
            served.take(changed(estimate_of(), revision=revision, reports=100 * revision, final=final))
            shown.section().locator(".reports", has_text=f"{100 * revision}").wait_for()
        shown.section().locator(".badge", has_text="Final").wait_for()
        assert shown.page.evaluate("window.spoken") == []
        assert shown.page.evaluate("window.kept")
        assert shown.streams() == before


def test_rows_are_those_of_the_record(tab: "Page", served: Served) -> None:
    """Intervals are shown unchanged, or as a bound if both ends look the same; markup in a value is text.

    Bars and lines match the numbers to half a pixel, measured in the browser's layout.
    """
    served.take(NOISY)
    with visit(tab, served.address, reduced_motion="reduce") as shown:
        shown.status("Live")
        section = shown.section()
        section.get_by_role("button", name="Show 1 more").click()
        assert shown.page.locator("#notices").inner_text() == ""
        assert shown.rows() == {
            HOSTILE: ["", "50.0", "40.0 – 70.0"],
            "fig": ["", "20.0", "0.0 – 31.0"],
            "kiwi": ["", "0.0", "below 0.1"],
            "lime": ["not distinguishable from zero", "0.0", "below 0.1"],
            "other": ["not distinguishable from zero▸", "30.0", "0.0 – 97.1"],
        }
        assert shown.page.locator("img").count() == 0
        assert section.locator(".reports").inner_text() == "1,234"
        assert section.locator(".badge").inner_text() == "Provisional"
        assert section.locator(".window").inner_text().endswith("00:00:00 – 00:00:10 UTC")
        assert section.locator(".finality").inner_text().endswith("00:00:15 UTC.")
        assert section.locator(".axis span").last.inner_text() == "80"  # not 100, which `other` would need
        caption = section.locator("caption").first
        assert "maximum likelihood" in caption.inner_text()
        assert transition(shown) == "0s"
        shown.page.emulate_media(reduced_motion="no-preference")
        assert transition(shown) == "0.5s, 0.5s"
        shown.page.emulate_media(reduced_motion="reduce")

        # It would be from 0 to 100 %, and set the axis; instead the page says why there is none.
        ends: dict[str, Any] = {"low": [0.4, 0.0, 0.0, 0.0], "high": [0.7, 1.0, 0.1, 0.1]}
        served.take(changed(NOISY, unreliable=[False, True, False, False], revision=2, **ends))
        caption.filter(has_text="No interval is stated for fig: it shares its bits with unlisted").wait_for()
        assert shown.rows()["fig"][-1] == "shares bits with unlisted strings"
        assert section.locator(".axis span").last.inner_text() == "80"

        record = changed(estimate_of(), significant=[True, True, True], revision=3)
        served.take(record)
        section.locator(".reports", has_text="40").wait_for()
        section.locator('tr[data-value="apple"]').wait_for()
        check_lengths(shown, record)


def transition(shown: Watched) -> str:
    return style(shown, "fruit", "transitionDuration")


def style(shown: Watched, name: str, part: str) -> str:
    """A property of the first bar of a collection."""
    plot = shown.section(name).locator("tbody .plot").first
    found: str = plot.evaluate("(plot, part) => getComputedStyle(plot, '::before')[part]", part)
    return found


def check_lengths(shown: Watched, record: EstimateRecord) -> None:
    end = float(shown.section().locator(".axis span").last.inner_text()) / 100
    measured = shown.page.evaluate(MEASURE)
    assert sorted(value for value, *_ in measured) == sorted(record.values)
    for value, width, *lengths in measured:
        i = record.values.index(value)
        expected = [record.frequency[i], record.low[i], record.high[i] - record.low[i]]
        assert lengths[:2] == pytest.approx([share / end * width for share in expected[:2]], abs=0.5)
        # At least as wide as its two end marks.
        assert lengths[2] == pytest.approx(expected[2] / end * width, abs=3.5)


def test_privacy_cost_is_shown_as_text(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a budget of values that change, and for a collection of one value and one report."""
    set_clock(monkeypatch)
    words = Collection("words", LongitudinalHash.from_epsilons(4.0, 1.0), candidates=("a",), memoize=True)
    words = replace(words, minimum_reports=1)
    limits = {
        "fruit": ClientLimits(1, None, lambda: None),
        "place": ClientLimits(2, (8.0, 1e-6, 86_400), lambda: 3, values="unchanged"),
        "words": ClientLimits(1, (12.0, 1e-6, 86_400), lambda: None, 2),
    }
    with (
        Served(COLLECTIONS | {words.fingerprint: words}, limits).serving() as served,
        visit(tab, served.address) as shown,
    ):
        cost = {name: shown.section(name).locator(".privacy") for name in limits}
        cost["words"].filter(has_text="Budget").wait_for()
        assert cost["fruit"].inner_text() == (
            "One report (ε = 2) cannot change anyone’s odds by more than a factor 7.4. "
            "Every further report of a client costs as much again, whatever its values. "
            "No budget: a client may send 1 report a window, without end."
        )
        assert cost["place"].inner_text() == (
            "One report (ε = 1.8314) cannot change anyone’s odds by more than a factor 6.3. "
            "All reports of one client whose value stays the same (permanent ε = 7.7837): by no more than a "
            "factor 2,402. Each further value costs as much again, if it is known when values change. That a "
            "value changed is not hidden. Budget of a client: ε = 8 at δ = 1e-6 in 1 day, which is 3 reports "
            "while its value stays the same; 2 reports a window."
        )
        changes = "A client shows at most 2 changes of hash bucket in all"
        assert changes in cost["words"].inner_text()
        section = shown.section("words")
        assert section.locator(".waiting").inner_text().endswith("once it has 1 report.")
        assert section.locator(".question").inner_text() == "Shares of 1 value"


@pytest.mark.slow
def test_page_is_live_only_while_the_worker_is(
    tab: "Page", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old figures are hatched, because grey already has another meaning."""
    served.reasons = [f"partition 1: opening {HOSTILE}"]
    served.metrics.unattributed.add(Counter(unknown_collection=7, malformed=3))
    # With its 3 cohorts nothing would be significant, and its rows folded away.
    place = changed(estimate_of(PLACE), window_start=T0 + 30, significant=[True] * 3)
    served.take(changed(estimate_of(), final=True), place)
    with visit(tab, served.address) as shown:
        shown.status("Not ready")
        reported = shown.page.locator("#notices").inner_text()
        assert f"Not ready: partition 1: opening {HOSTILE}." in reported
        assert "in no collection’s window: 10 packs (malformed 3, unknown collection 7)." in reported
        assert "gradient" in style(shown, "fruit", "backgroundImage")
        served.reasons = []
        shown.status("Live")
        assert style(shown, "fruit", "backgroundImage") == "none"
        set_clock(monkeypatch, FRESH + 11)
        shown.status("No new data since")
        overdue = shown.section().locator(".overdue", has_text="No new data: a newer estimate was due at")
        overdue.wait_for()
        assert overdue.inner_text().count("00:00:40 UTC") == 1
        assert shown.section().locator(".badge").inner_text() == "Final"
        assert "gradient" in style(shown, "fruit", "backgroundImage")
        assert style(shown, "place", "backgroundImage") == "none"
