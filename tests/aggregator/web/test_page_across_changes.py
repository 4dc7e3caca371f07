"""The page across a change of parameters, in a real Chromium: shares so far, history, links, comparisons."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from aiokafka.errors import KafkaConnectionError

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.former_estimates import FormerEstimates
from deniable.aggregator.views.joined_so_far import SharesAcrossChanges, join_so_far
from deniable.aggregator.web import past_windows, rollup_api
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from deniable.analysis.comparison import check_comparable, compare_joined
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.browser import Watched, on_desk_and_phone, visit
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, T0, changed, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

FORMER = replace(FRUIT, mechanism=KRR.from_epsilon(5, 1.0), values=("apple", "fig", "kiwi", "lime"))
STRICT = replace(FRUIT, mechanism=KRR.from_epsilon(2, 1.0), values=("apple", "fig"), other=False)
SHARES = {4: (9000, 12_000, 5000, 4000), 5: (300, 250, 150, 200, 100), 2: (500, 500)}


def final(collection: Collection, step: int) -> EstimateRecord:
    """The estimate of one window, so many before the one that ends at T0."""
    counts = np.array([SHARES[collection.width]])
    window = WindowCounts(counts, counts.sum(axis=1), packs=1, rejected=0)
    result = window_estimate.estimate(collection, window)
    return window_estimate.record_of(collection, T0 - 10 * step, window, result, final=True)


def joined(unread: int = 0) -> Joined:
    """Thirty windows of the day's end; twenty before them are of FORMER, ten of STRICT."""
    counts = WindowCounts(np.array([SHARES[4]]), np.array([30_000]), 30, 0)
    others = {FORMER.fingerprint: 20 + unread, STRICT.fingerprint: 10}
    return Joined(counts, {T0 - 10 * each: 1000 for each in range(30, 0, -1)}, [], others, 0)


def fill(reading: FormerEstimates) -> None:
    for each in [
        *(final(FORMER, step) for step in range(50, 30, -1)),
        *(final(STRICT, step) for step in range(60, 50, -1)),
    ]:
        reading.take(each.key, encode_estimate(each))


def expected() -> SharesAcrossChanges:
    """What the worker answers; `views` test how it is computed."""
    reading, found = FormerEstimates(FRUIT, Period(T0 - 86_400, T0)), joined()
    fill(reading)
    return join_so_far(FRUIT, found, roll_up(FRUIT, found), reading.definitions())


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A worker whose topics are replaced."""

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        if period.end - period.start < 86_400:  # of a comparison, or a chosen window
            empty = WindowCounts(np.zeros((1, 4), np.int64), np.zeros(1, np.int64), 0, 0)
            return Joined(empty, {}, [], {FORMER.fingerprint: 1}, 0)
        return joined()

    async def read(_: object, __: object, reading: FormerEstimates) -> None:
        fill(reading)

    monkeypatch.setattr(past_windows, "join_windows", join)
    monkeypatch.setattr(rollup_api, "read_former_estimates", read)
    set_clock(monkeypatch)
    served = Served()
    past = PastWindows(DEPLOYMENT)
    comparer = Comparer(check_comparable, compare_joined)
    served.server.routes = RollUps(past).routes() + Comparisons(past, comparer).routes()
    with served.serving() as serving:
        newest = changed(estimate_of(), window_start=T0 - 10, window_end=T0, final=True)
        serving.take(*(final(FORMER, step) for step in (4, 3)), final(FRUIT, 2), newest, estimate_of())
        yield serving


def show(shown: Watched, text: str) -> list[str]:
    """Ask for the shares so far; return what is said of their parts once `text` is said of the whole."""
    shown.section().locator(".so-far").get_by_role("button", name="Show", exact=True).click()
    shown.section().locator(".looks", has_text=text).wait_for()
    return shown.section().locator(".parts li").all_inner_texts()


@pytest.mark.all
@on_desk_and_phone
def test_shares_so_far_are_joined_and_changes_are_said(
    tab: "Page", worker: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, viewport: Any
) -> None:
    """The rows are those that the worker computes; each part says what changed, or why it is left out."""
    figures = expected()
    with visit(tab, worker.address, viewport=viewport) as shown:
        shown.status("Live")
        shown.section().get_by_text("What are the shares over all windows so far?").click()
        parts = show(shown, "reports in ")
        rows = shown.section().locator(".so-far tr[data-value]")
        rows.first.wait_for()
        intervals = {
            row.locator("th").inner_text().strip(): row.locator(".interval").inner_text()
            for row in rows.all()
        }
        looks = shown.section().locator(".looks").inner_text()
        caption = shown.section().locator(".so-far caption").inner_text()
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert violations(shown.page) == []
        shown.keep(f"so-far-joined-{viewport['width']}")
        check_file(shown, tmp_path / "so_far.csv", figures)
        check_what_is_left_out(shown, monkeypatch)
    assert looks.startswith("50,000 reports in 50 windows since Dec 31, 23:51:40 UTC. Look again")
    assert parts == [
        "Other parameters until Dec 31, 23:51:40 UTC: epsilon 1 to 2; only now: kiwi. Not comparable, so "
        "left out: the lists differ, and without “other” a share is one of listed values alone.",
        "Other parameters until Dec 31, 23:55:00 UTC: epsilon 1 to 2; only then: lime. 20,000 reports in 20 "
        "windows, joined by inverse variance.",
        "Only some lists have lime: estimated from the windows of these.",
        "Found to differ between parameters: apple, fig, kiwi. A mean of different shares is weighted by "
        "certainty, not by reports. The test allows for the randomizers’ noise alone: where other people "
        "report after a change, shares may differ although nobody changed.",
    ]
    assert caption.endswith("Estimator: means over windows, joined by inverse variance.")
    for value, low, high in zip(figures.values, figures.low, figures.high, strict=True):
        assert intervals[value] == f"{100 * low:.1f} – {100 * high:.1f}"


def check_file(shown: Watched, path: Path, figures: SharesAcrossChanges) -> None:
    """The rows are saved as CSV with the figures of the worker, to the last digit."""
    with shown.page.expect_download() as found:
        shown.section().locator(".so-far").get_by_role("button", name="Download CSV").click()
    found.value.save_as(path)
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert sorted(row["value"] for row in rows) == sorted(figures.values)
    names = ("share", "low", "high", "low_all", "high_all", "std_error", "shared_std_error", "p_value")
    for row in rows:
        place = figures.values.index(row["value"])
        for name in names:
            assert float(row[name]) == getattr(figures, name)[place], (row["value"], name)
        assert int(row["parts_of_value"]) == figures.parts_of_value[place]
        assert row["differs"] == str(figures.differs[place]).lower()


def check_what_is_left_out(shown: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows without estimates make intervals those of one look; else the present shares are left."""

    async def join(*_: object) -> Joined:
        return joined(unread=7)

    async def fail(*_: object) -> None:
        raise KafkaConnectionError("away")

    monkeypatch.setattr(past_windows, "join_windows", join)
    left_out = "7 windows of other parameters were left out; deniable rollup --former joins"
    assert show(shown, "at this look")[2].startswith(left_out)
    monkeypatch.setattr(rollup_api, "read_former_estimates", fail)
    assert show(shown, "30,000 reports in 30 windows") == [
        "37 windows of other parameters were left out; deniable rollup --former joins what their counts "
        "say. Not joined here: estimates under former parameters cannot be read within 60 s."
    ]


def test_values_of_the_former_list_have_a_history(tab: "Page", worker: Served) -> None:
    """Lime is drawn behind the leading values, to the change and in a window that was counted under both."""
    with visit(tab, worker.address) as shown:
        panels = shown.section().locator(".panel")
        panels.filter(has_text="lime").wait_for()
        assert panels.all_inner_texts()[-1].startswith("lime")
        line = panels.last.locator("path").nth(2)
        before = line.get_attribute("d") or ""
        assert before.startswith("M0 ")
        assert (before.count("L"), before.count("M")) == (1, 1)
        worker.take(final(FORMER, 2))
        shown.section().locator(".moment", has_text="40 reports").wait_for()
        panels.filter(has_text="lime").wait_for()
        shown.section().get_by_text("The same as a table").click()
        row = shown.section().locator(".history tbody tr", has_text="31,000")
        row.wait_for()
        assert "–" not in row.locator("td").last.inner_text()[:1]


def test_former_windows_are_not_said_to_be_lost(tab: "Page", worker: Served) -> None:
    """Of a comparison of two periods before the change, the reason why there is none is given."""
    between = f"{T0 - 7200}/{T0 - 3600},{T0 - 3600}/{T0 - 60},0.05"
    with visit(tab, f"{worker.address}#fruit.window={T0 - 40}", refused=[404, 422]) as shown:
        shown.section().locator(".trouble", has_text="was counted under other parameters").wait_for()
        shown.page.evaluate(f"location.hash = 'fruit.compare={between}'")
        outcome = shown.section().locator(".outcome", has_text="No comparison")
        outcome.wait_for()
        assert "1 window is of other parameters" in outcome.inner_text()
