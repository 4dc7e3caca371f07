"""The page in a real Chromium: status of the worker and drawn estimates."""

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aggregator.deployment import ClientLimits
from aggregator.records.estimate import Other
from estimators.collection import Collection
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from tests.support.aggregator.browser import Watched, watched
from tests.support.aggregator.builders import COLLECTIONS, PLACE, T0, changed, estimate_of
from tests.support.aggregator.served import FRESH, Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


def test_fresh_estimate_is_live(browser: "Browser", served: Served) -> None:
    """Intervals are shown unchanged, or as a bound if both ends look the same; markup in a value is text."""
    served.take(NOISY)
    with watched(browser, served.address) as shown:
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
        assert "maximum likelihood" in section.locator("caption").first.inner_text()


def test_bars_and_intervals_match_the_numbers(browser: "Browser", served: Served) -> None:
    """To half a pixel, measured in the browser's layout."""
    record = changed(estimate_of(), significant=[True, True, True])
    served.take(record)
    with watched(browser, served.address, reduced_motion="reduce") as shown:
        shown.status("Live")
        end = float(shown.section().locator(".axis span").last.inner_text()) / 100
        measured = shown.page.evaluate(
            """() => Array.from(document.querySelectorAll("tbody tr[data-value]"), (row) => {
              const plot = row.querySelector(".plot");
              const [bar, line] = ["::before", "::after"].map((part) => getComputedStyle(plot, part));
              const width = plot.clientWidth;
              const lengths = [bar.width, line.left, line.width].map((length) => parseFloat(length));
              return [row.dataset.value, width, ...lengths];
            })"""
        )
    assert sorted(value for value, *_ in measured) == sorted(record.values)
    for value, width, *lengths in measured:
        i = record.values.index(value)
        expected = [record.frequency[i], record.low[i], record.high[i] - record.low[i]]
        assert lengths[:2] == pytest.approx([share / end * width for share in expected[:2]], abs=0.5)
        assert lengths[2] == pytest.approx(
            expected[2] / end * width, abs=3.5
        )  # at least as wide as its two end marks


def test_an_unreliable_value_has_no_interval(browser: "Browser", served: Served) -> None:
    """It would be from 0 to 100 %, and set the axis; instead the page says why there is none."""
    record = changed(
        NOISY,
        std_error=[0.05, None, 0.05, 0.05],
        low=[0.4, 0.0, 0.0, 0.0],
        high=[0.7, 1.0, 0.1, 0.1],
        significant=[True, False, True, True],
        unreliable=[False, True, False, False],
    )
    served.take(record)
    with watched(browser, served.address) as shown:
        shown.status("Live")
        section = shown.section()
        section.get_by_role("button", name="Show 1 more").click()
        reason = "No interval is stated for fig: it shares its bits with unlisted strings."
        section.locator("caption", has_text=reason).wait_for()
        row = section.locator('tr[data-value="fig"]')
        assert row.locator(".interval").inner_text() == "shares bits with unlisted strings"
        assert section.locator(".axis span").last.inner_text() == "80"


def test_many_unreliable_values_are_named_and_counted(browser: "Browser", served: Served) -> None:
    names, count = [f"name {place}" for place in range(8)], 8
    record = changed(
        NOISY,
        values=names,
        frequency=[0.1] * count,
        count=[100.0] * count,
        std_error=[None] * 7 + [0.1],
        low=[0.0] * count,
        high=[1.0] * 7 + [0.3],
        significant=[False] * count,
        unreliable=[True] * 7 + [False],
    )
    served.take(record)
    with watched(browser, served.address) as shown:
        said = "for name 0, name 1, name 2, name 3, name 4 and 2 more: they share their bits with unlisted"
        shown.section().locator("caption", has_text=said).wait_for()


def test_figures_withheld_in_few_cohorts_have_a_reason(browser: "Browser", served: Served) -> None:
    """No value is significant then, so all rows are behind a button; with noise alone the rest is known."""
    said = "Intervals are withheld: reports in fewer than 6 cohorts do not tell values from unlisted strings."
    count = len(NOISY.values)
    ends = {"low": [0.0] * count, "high": [1.0] * count, "significant": [False] * count}
    record = changed(NOISY, mechanism="rappor", other=Other(0.2, None, 0.0, 1.0), **ends)
    served.take(record)
    with watched(browser, served.address) as shown:
        caption = shown.section().locator("caption").first
        caption.filter(has_text=said).wait_for()
        noisy = changed(record, other=Other(0.2, 0.5, 0.0, 1.0), revision=record.revision + 1)
        served.take(noisy)
        caption.filter(has_not_text=said).wait_for()


def test_an_incomplete_list_is_named(browser: "Browser", served: Served) -> None:
    served.take(changed(NOISY, diagnostics={"chi_square_ratio": 10.63, "chi_square_limit": 1.216}))
    with watched(browser, served.address) as shown:
        shown.status("Live")
        caption = shown.section().locator("caption").first
        caption.filter(has_text="chi-square ratio 10.6, above 1.22). deniable decode fruit tries").wait_for()
        revised = changed(NOISY, diagnostics={"chi_square_ratio": 1.1, "chi_square_limit": 1.216})
        served.take(changed(revised, revision=NOISY.revision + 1))
        caption.filter(has_not_text="The list is incomplete").wait_for()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (1.0, "1 frequent text is not on it, with about 12.3 % of the reports; the listed shares are"),
        (2.0, "2 frequent texts are not on it, with about 12.3 % of the reports together; the listed"),
    ],
)
def test_frequent_texts_outside_the_list_are_counted(
    browser: "Browser", served: Served, texts: float, said: str
) -> None:
    """As `unlisted_texts` and `unlisted_share` of local hashing say; nothing while there is none."""
    served.take(changed(NOISY, diagnostics={"unlisted_texts": texts, "unlisted_share": 0.1234}))
    with watched(browser, served.address) as shown:
        caption = shown.section().locator("caption").first
        caption.filter(has_text=f"The list is incomplete: {said}").wait_for()
        assert "\u00a0% of" in caption.inner_text()  # a line must not begin with the sign
        assert "deniable decode fruit tries other strings." in caption.inner_text()
        complete = {"unlisted_texts": 0.0, "unlisted_share": 0.0}
        served.take(changed(NOISY, diagnostics=complete, revision=NOISY.revision + 1))
        caption.filter(has_not_text="The list is incomplete").wait_for()


def test_one_of_a_kind_is_not_a_plural(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a single value, a window of a single report."""
    set_clock(monkeypatch)
    single = replace(PLACE, candidates=("LAX",), minimum_reports=1)
    record = changed(estimate_of(single), reports=1)
    lone = changed(record, window_start=T0 - 10, window_end=T0, final=True)
    with Served({single.fingerprint: single}).serving() as served:
        with watched(browser, served.address) as shown:
            section = shown.section("place")
            section.locator(".waiting", has_text="once it has 1 report.").wait_for()
            assert section.locator(".question").inner_text() == "Shares of 1 value"
        served.take(lone, record)
        with watched(browser, served.address) as shown:
            section = shown.section("place")
            section.locator("caption", has_text=re.compile(r"of 1 value is significantly")).wait_for()
            section.locator(".moment", has_text=re.compile(r", 1 report$")).wait_for()


def test_updates_arrive_without_a_reload(browser: "Browser", served: Served) -> None:
    with watched(browser, served.address) as shown:
        shown.status("Waiting for the first estimate")
        before = shown.streams()
        assert (
            "a window is published once it has 6 reports" in shown.section().locator(".waiting").inner_text()
        )
        shown.page.evaluate("window.kept = true")
        for revision, final in ((2, False), (3, False), (3, True)):
            served.take(changed(estimate_of(), revision=revision, reports=100 * revision, final=final))
            shown.section().locator(".reports", has_text=f"{100 * revision}").wait_for()
        shown.section().locator(".badge", has_text="Final").wait_for()
        shown.status("Live")
        assert shown.page.evaluate("window.kept")
        assert shown.streams() == before


def test_privacy_cost_is_shown_as_text(browser: "Browser", served: Served) -> None:
    with watched(browser, served.address) as shown:
        fruit, place = (shown.section(name).locator(".privacy") for name in ("fruit", "place"))
        place.filter(has_text="Budget").wait_for()
        assert fruit.inner_text() == (
            "One report (ε = 2) cannot change anyone’s odds by more than a factor 7.4. "
            "Every further report of a client costs as much again, whatever its values. "
            "No budget: a client may send 1 report a window, without end."
        )
        assert place.inner_text() == (
            "One report (ε = 1.8314) cannot change anyone’s odds by more than a factor 6.3. "
            "All reports of one client whose value stays the same (permanent ε = 7.7837): by no more than a "
            "factor 2,402. Each further value costs as much again, if it is known when values change. That a "
            "value changed is not hidden. Budget of a client: ε = 8 at δ = 1e-6 in 1 day, which is 3 reports "
            "while its value stays the same; 2 reports a window."
        )


KNOWN = ", if it is known when hash buckets change"
HELD = (
    "no interval includes that error. Browsers do not limit changes: they may send fewer reports, and for "
    "ever each hash bucket that they show costs as much again."
)


@pytest.mark.parametrize(
    ("changes", "reports", "allowed", "held"),
    [
        (None, None, f"any number of reports keeps, whatever the values{KNOWN}", ""),
        (None, 3, "is 3 reports, whatever the values", ""),
        (
            2,
            None,
            f"any number of reports keeps, whatever the values{KNOWN}",
            " A client shows at most 2 changes of hash bucket in all, then goes on reporting the last one: "
            + HELD,
        ),
        (
            0,
            None,
            "any number of reports keeps, whatever the values",
            f" A client always reports its first hash bucket: {HELD}",
        ),
    ],
)
def test_budget_of_values_that_change_states_its_condition(
    browser: "Browser", changes: int | None, reports: int | None, allowed: str, held: str
) -> None:
    """Of longitudinal local hashing, whose budgets bound reports of values that change."""
    words = Collection("words", LongitudinalHash.from_epsilons(4.0, 1.0), candidates=("a", "b"), memoize=True)
    limits = {"words": ClientLimits(1, (12.0, 1e-6, 86_400), lambda: reports, changes)}
    with (
        Served({words.fingerprint: words}, limits).serving() as served,
        watched(browser, served.address) as shown,
    ):
        privacy = shown.section("words").locator(".privacy").filter(has_text="Budget")
        privacy.wait_for()
        cost, _, said = privacy.inner_text().partition(" Budget of a client: ")
        assert ("whose value stays the same" in cost) == ("is not hidden" in cost) == (changes != 0)
        assert said == f"ε = 12 at δ = 1e-6 in 1 day, which {allowed}; 1 report a window.{held}"


def test_overdue_estimate_is_stale(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is hatched, because grey already has another meaning."""
    set_clock(monkeypatch, FRESH + 11)
    # With its 3 cohorts nothing would be significant, and its rows folded away.
    place = changed(estimate_of(PLACE), window_start=T0 + 30, significant=[True] * 3)
    served.take(changed(estimate_of(), final=True), place)
    with watched(browser, served.address) as shown:
        shown.status("No new data since")
        overdue = shown.section().locator(".overdue").inner_text()
        assert overdue.startswith("No new data: a newer estimate was due at")
        assert overdue.count("00:00:40 UTC") == 1
        assert shown.section().locator(".badge").inner_text() == "Final"
        fills = {name: _fill(shown, name) for name in ("fruit", "place")}
        assert "gradient" in fills["fruit"]
        assert fills["place"] == "none"


def _fill(shown: Watched, name: str) -> str:
    found: str = (
        shown.section(name)
        .locator("tbody .plot")
        .first.evaluate("plot => getComputedStyle(plot, '::before').backgroundImage")
    )
    return found


@pytest.mark.slow
def test_unready_worker_is_not_shown_live(browser: "Browser", served: Served) -> None:
    served.reasons = [f"partition 1: opening {HOSTILE}"]
    served.metrics.unattributed.add(Counter(unknown_collection=7, malformed=3))
    served.take(estimate_of())
    with watched(browser, served.address) as shown:
        shown.status("Not ready")
        reported = shown.page.locator("#notices").inner_text()
        assert f"Not ready: partition 1: opening {HOSTILE}." in reported
        assert "in no collection’s window: 10 packs (malformed 3, unknown collection 7)." in reported
        assert "gradient" in _fill(shown, "fruit")
        served.reasons = []
        shown.status("Live")


def test_reduced_motion_stops_animations(browser: "Browser", served: Served) -> None:
    served.take(estimate_of())
    durations = {}
    for wish in ("reduce", "no-preference"):
        with watched(browser, served.address, reduced_motion=wish) as shown:
            shown.status("Live")
            durations[wish] = (
                shown.section()
                .locator("tbody .plot")
                .first.evaluate("plot => getComputedStyle(plot, '::before').transitionDuration")
            )
    assert durations == {"reduce": "0s", "no-preference": "0.5s, 0.5s"}


def test_only_collections_of_the_file_are_shown(browser: "Browser", served: Served) -> None:
    with watched(browser, served.address) as shown:
        shown.status("Waiting for the first estimate")
        assert shown.page.locator("h2").all_inner_texts() == [each.name for each in COLLECTIONS.values()] + [
            "How to read this"
        ]
