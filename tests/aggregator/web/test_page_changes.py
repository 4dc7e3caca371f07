"""The page shows shares that changed, and intervals for all values at once, in a real Chromium.

The sentences are tested in Node: see page/sentences.test.mjs.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.browser import PHONE, Watched, visit
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, T0, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.scene import DELAY, delay_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

RISE = ShareChange("fig", T0 - 600, T0, 0.2, 0.251, 0.051, 0.031, 0.071)
FALL = ShareChange("<b>kiwi</b>", T0 - 300, T0 + 10, 0.4, 0.3, -0.1, -0.15, -0.05)
MEAN = ShareChange("mean", T0 - 600, T0, 100.25, 111.5, 11.25, 8.0, 14.5)


def test_changes_are_sentences_until_they_are_over(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first; markup in a value is text. What comes with each window is not announced."""
    set_clock(monkeypatch)
    number = replace(DELAY, change_alarms_a_year=12.0)
    with Served(COLLECTIONS | {number.fingerprint: number}).serving() as served:
        served.take(estimate_of(FRUIT), *delay_estimates())
        served.change("fruit", [RISE, FALL], {"fig": 0.2019, "kiwi": 0.1})
        served.change("delay", [MEAN])
        with visit(tab, served.address) as shown:
            lines = shown.section().locator(".share-changes li")
            lines.nth(2).wait_for()
            fall, rise, rate = lines.all_inner_texts()
            assert fall.startswith("The share of <b>kiwi</b> changed from 40.0\u00a0% to 30.0\u00a0% since ")
            newest = " In the newest final window: 20.2\u00a0%."
            assert rise.endswith(f"by +5.1 percentage points (95 % interval +3.1 to +7.1).{newest}")
            assert lines.nth(1).locator("[aria-live=off]").inner_text() == newest
            assert rate == "While no share changes, there are at most 0.1 such alarms a year."
            mean, rate = shown.section("delay").locator(".share-changes li").all_inner_texts()
            assert mean.startswith("The mean changed from 100.3 to 111.5 since ")
            assert mean.endswith("by +11.25 (95 % interval +8 to +14.5).")
            assert rate == "While the mean does not change, there are at most 12 such alarms a year."
            shown.keep("changes")
            check_long_list(shown, served)
            check_intervals(shown)
            served.change("fruit", [])
            shown.section().locator(".share-changes").wait_for(state="hidden")


def test_changes_are_folded_on_a_phone(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """Until they are asked for, so that figures are seen first."""
    set_clock(monkeypatch)
    with Served(COLLECTIONS).serving() as served:
        served.take(estimate_of(FRUIT))
        served.change("fruit", [RISE, FALL])
        with visit(tab, served.address, viewport=PHONE) as shown:
            fold = shown.section().get_by_text("2 changes found lately")
            fold.wait_for()
            assert not shown.section().locator(".share-changes").is_visible()
            fold.click()
            shown.section().locator(".share-changes li").nth(1).wait_for()


def check_long_list(shown: Watched, served: Served) -> None:
    """Of many changes there are ten lines, and long names fit on a phone."""
    shown.page.set_viewport_size(PHONE)
    many = [ShareChange(f"v{place}{'v' * 80}", T0, T0, 0.1, 0.2, 0.1, 0.05, 0.15) for place in range(30)]
    served.change("fruit", many)
    lines = shown.section().locator(".share-changes li")
    lines.filter(has_text="20 earlier changes: see deniable changes.").wait_for()
    assert lines.count() == 12
    assert "v29v" in lines.first.inner_text()
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(shown.page) == []
    shown.keep("changes-phone")


def check_intervals(shown: Watched) -> None:
    """Those for all values at once replace single ones, and the other way round."""
    record = estimate_of(FRUIT)
    box = shown.section().get_by_role("checkbox", name="Intervals that hold for all values at once")
    single = shown.rows()
    box.check()
    together = shown.rows()
    assert {*together} & {*record.values}
    for place, value in enumerate(record.values):
        if value in together:
            ends = [f"{100 * end:.1f}" for end in (record.low_all[place], record.high_all[place])]
            assert together[value][-1] == " – ".join(ends)
            assert together[value][-1] != single[value][-1]
    box.uncheck()
    assert shown.rows() == single


def test_collections_whose_changes_are_not_looked_for_say_so(
    tab: "Page", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others have no such sentence."""
    set_clock(monkeypatch)
    values = tuple(map(str, range(201)))
    many = replace(FRUIT, name="many", mechanism=KRR.from_epsilon(201, 2.0), values=values, other=False)
    hashed = Collection("hashed", LocalHash.from_epsilon(2.0), window_seconds=10, candidates=("a", "b"))
    tree = PrefixTree.from_epsilon((2, 3), 4.0)
    text = Collection("text", tree, window_seconds=10, growth=GrowthRule(2, 0.05))
    collections = {each.fingerprint: each for each in (FRUIT, many, hashed, text)}
    with Served(collections).serving() as served:
        for each in collections.values():
            counts = np.full((each.cohorts, each.width), 500)
            found = WindowCounts(counts, counts.sum(axis=1), 1, 0)
            result = window_estimate.estimate(each, found)
            for start in (T0 - 10, T0):
                served.take(window_estimate.record_of(each, start, found, result, final=True))
        with visit(tab, served.address) as shown:
            sentences = {}
            for name in ("fruit", "many", "hashed", "text"):
                shown.section(name).locator(".history .scale").wait_for()
                part = shown.section(name).locator(".unwatched")
                sentences[name] = part.inner_text() if part.is_visible() else ""
            shown.keep("unwatched")
    assert sentences.pop("fruit") == ""
    parts = {
        "many": ("there are more than 200 values", "deniable changes many"),
        "hashed": ("former windows have too many counters", "deniable compare hashed"),
        "text": ("the list of texts grows", "deniable decode text --grow"),
    }
    for name, (reason, command) in parts.items():
        assert f": {reason}. {command}" in sentences[name]
