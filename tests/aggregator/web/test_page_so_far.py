"""The shares over all windows so far in a real Chromium: those of the roll-up's sequence, at every look."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history import rollup
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.share_sequences import ShareSequence
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.web import past_windows, rollup_api
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from deniable.analysis.comparison import check_comparable, compare_joined
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.support.aggregator.browser import Watched, on_desk_and_phone, until, visit
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

DAY = Period(T0 - 86_400, T0)
QUESTION = "What are the shares over all windows so far?"


def joined() -> Joined:
    """Thirty windows of which the last day has reports; five more are of other parameters."""
    counts = WindowCounts(np.array([[9000, 12_000, 5000, 4000]]), np.array([30_000]), 30, 0)
    return Joined(counts, {T0 - 10 * each: 1000 for each in range(30, 0, -1)}, [], {0xAB: 3, 0xCD: 2}, 0)


def sequence() -> ShareSequence:
    """What `/api/rollup` answers, and `deniable rollup --json` prints."""
    found = joined()
    coverage = rollup.coverage_of(FRUIT, DAY, found)
    record = rollup.record_of(FRUIT, coverage, found, rollup.roll_up(FRUIT, found))
    assert record.sequence is not None
    return record.sequence


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A worker whose topics are replaced: of estimates it has none."""

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        assert period == DAY
        return joined()

    async def read(*_: object) -> None: ...

    monkeypatch.setattr(past_windows, "join_windows", join)
    monkeypatch.setattr(rollup_api, "read_former_estimates", read)
    set_clock(monkeypatch)
    served = Served()
    served.server.routes = RollUps(PastWindows(DEPLOYMENT)).routes()
    with served.serving() as serving:
        serving.take(changed(estimate_of(), window_start=T0 - 10, window_end=T0, final=True), estimate_of())
        yield serving


def ask(shown: Watched, name: str = "fruit") -> Any:
    """Open the part of the page and ask; return what is said then."""
    shown.status("Live")
    shown.section(name).get_by_text(QUESTION).click()
    shown.section(name).locator(".so-far").get_by_role("button", name="Show", exact=True).click()
    return shown.section(name).locator(".looks")


def intervals(shown: Watched) -> dict[str, str]:
    """Return the text of each interval by value."""
    rows = shown.section().locator(".so-far tr[data-value]").all()
    return {row.locator("th").inner_text().strip(): row.locator(".interval").inner_text() for row in rows}


@on_desk_and_phone
def test_intervals_are_those_of_the_sequence(
    tab: "Page", worker: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, viewport: Any
) -> None:
    """Of the day that the newest final window ends; the switch shows those for all values.

    Windows of other parameters without estimates are said to be left out; so is why there are no shares.
    """
    expected = sequence()
    with visit(tab, worker.address, viewport=viewport) as shown:
        ask(shown).filter(has_text="30,000 reports in 30 windows").wait_for()
        shown.section().locator(".so-far tr[data-value]").first.wait_for()
        left_out = shown.section().locator(".parts li").all_inner_texts()
        single = intervals(shown)
        check_file(shown, tmp_path, expected)
        shown.section().locator(".so-far").get_by_role("checkbox").check()
        together = intervals(shown)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert violations(shown.page) == []
        shown.keep(f"so-far-{viewport['width']}")
        check_too_few_reports(shown, monkeypatch)
    for place, value in enumerate(expected.values):
        of_one = (expected.low[place], expected.high[place])
        of_all = (expected.low_all[place], expected.high_all[place])
        for found, ends in ((single, of_one), (together, of_all)):
            assert found[value] == " – ".join(f"{100 * end:.1f}" for end in ends)
        assert single[value] != together[value]
    assert left_out == [
        "5 windows of other parameters were left out; deniable rollup --former joins what their counts "
        "say. No estimate of them can be joined here: they have too few reports, leave values out, or "
        "are older than the topic keeps."
    ]


def check_file(shown: Watched, folder: Path, expected: ShareSequence) -> None:
    """The rows are saved as CSV, with the sequence's figures to the last digit, in the order of the rows."""
    with shown.page.expect_download() as found:
        shown.section().locator(".so-far").get_by_role("button", name="Download CSV").click()
    order = [*intervals(shown)]
    found.value.save_as(folder / "so_far.csv")
    start, end = (
        datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H%M%SZ") for each in (expected.since, T0)
    )
    assert found.value.suggested_filename == f"fruit-{start}-to-{end}.csv"
    with (folder / "so_far.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["value"] for row in rows] == order
    assert sorted(order) == sorted(expected.values)
    for row in rows:
        place = expected.values.index(row["value"])
        for name in ("share", "low", "high", "low_all", "high_all"):
            assert float(row[name]) == getattr(expected, name)[place], (row["value"], name)
        assert (row["collection"], row["from"]) == ("fruit", f"{start[:13]}:{start[13:15]}:{start[15:]}")


def check_too_few_reports(shown: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    async def few(*_: object) -> Joined:
        return Joined(WindowCounts(np.array([[1, 1, 0, 0]]), np.array([2]), 1, 0), {T0 - 10: 2}, [], {}, 0)

    monkeypatch.setattr(past_windows, "join_windows", few)
    shown.section().locator(".so-far").get_by_role("button", name="Show", exact=True).click()
    shown.section().locator(".looks", has_text="No shares: there are too few reports").wait_for()
    assert shown.section().locator(".so-far table").is_hidden()


def test_link_shows_the_same_shares_again(tab: "Page", worker: Served) -> None:
    """Also a copied one, with their search, order and intervals; closing the part takes it out of the link.

    Of the same period once a later window is final: the worker of this test refuses any other.
    """
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visit(tab, worker.address) as shown:
        ask(shown).filter(has_text="30,000 reports in 30 windows").wait_for()
        part = shown.section().locator(".so-far")
        part.locator("tr[data-value]").first.wait_for()
        part.get_by_role("checkbox").check()
        part.get_by_role("button", name="Value").click()
        expected, asked = intervals(shown), f"so_far=day,{DAY.start}/{DAY.end}"
        until(shown.page, f"location.hash.includes('{asked}')")
        shown.page.get_by_role("button", name="Copy link").click()
        shown.page.locator("#copied", has_text="Copied").wait_for()
        link = shown.page.evaluate("navigator.clipboard.readText()")
        part.get_by_text(QUESTION).click()
        until(shown.page, "!location.hash.includes('so_far=')")
    assert f"fruit.{asked}" in link
    worker.take(changed(estimate_of(), window_start=T0, window_end=T0 + 10, final=True, revision=9))
    with visit(tab, link) as again:
        again.section().locator(".so-far tr[data-value]").first.wait_for()
        assert intervals(again) == expected
        assert [*intervals(again)] == sorted(expected)
        assert not again.section().locator(".estimate .for-all input").is_checked()


def test_address_opens_and_closes_the_part(tab: "Page", worker: Served) -> None:
    """With its period, and the intervals. One that is no period opens nothing; Back opens it again."""
    address = f"{worker.address}#collections=fruit&fruit.intervals=all&fruit.so_far=week"
    with visit(tab, address) as shown:
        shown.status("Live")
        part = shown.section().locator(".so-far")
        until(shown.page, "document.querySelector('.so-far').open")
        assert part.locator("select").input_value() == "week"
        assert shown.section().locator(".estimate .for-all input").is_checked()
        shown.page.evaluate("location.hash = '#collections=fruit&fruit.so_far=year,1/2'")
        until(shown.page, "!document.querySelector('.so-far').open")
        shown.page.go_back()
        until(shown.page, "document.querySelector('.so-far').open")


def test_collection_without_candidates_says_so(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """It has reports enough, and nothing to estimate the shares of, nor to compare."""
    mechanism = PrefixTree.from_epsilon((2, 3), 4.0)
    text = Collection("text", mechanism, window_seconds=10, growth=GrowthRule(2, 0.05))
    counts = WindowCounts(np.full((2, text.width), 500), np.full(2, 500 * text.width), 1, 0)

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        return Joined(counts, {period.start: counts.reports}, [], {}, 0)

    monkeypatch.setattr(past_windows, "join_windows", join)
    set_clock(monkeypatch)
    collections = {text.fingerprint: text}
    served = Served(collections)
    past = PastWindows(DEPLOYMENT._replace(collections=collections))
    comparer = Comparer(check_comparable, compare_joined)
    served.server.routes = RollUps(past).routes() + Comparisons(past, comparer).routes()
    with served.serving() as serving:
        result = window_estimate.estimate(text, counts)
        for start in (T0 - 10, T0):
            record = window_estimate.record_of(text, start, counts, result, final=start < T0)
            serving.take(structs.replace(record, diagnostics=record.diagnostics | {"found_texts": 0.0}))
        compared = f"#text.compare={T0 - 20}/{T0 - 10},{T0 - 10}/{T0},0.05"
        with visit(tab, f"{serving.address}{compared}") as shown:
            section = shown.section("text")
            section.locator("caption", has_text="No text is listed now; what growing").wait_for()
            said = ask(shown, "text").filter(has_text="No shares: ")
            said.wait_for()
            assert said.inner_text() == (
                "No shares: no candidates are listed in the collection file. deniable decode text --grow "
                "finds frequent texts."
            )
            outcome = section.locator(".outcome", has_text="No candidates are listed")
            outcome.wait_for()
            assert outcome.inner_text().startswith(
                "No candidates are listed in the collection file, so no shares are compared: deniable decode "
                "text --grow, for each of two periods, shows which texts were frequent then. First: "
            )
            assert section.locator(".differences").is_hidden()
            shown.keep("so-far-no-candidates")
