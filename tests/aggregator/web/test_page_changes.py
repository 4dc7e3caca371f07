"""The page shows shares that changed, and intervals for all values at once, in a real Chromium."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs

from aggregator.estimation import window_estimate
from aggregator.records.share_change import ShareChange
from aggregator.records.window_counts import WindowCounts
from estimators.collection import Collection, GrowthRule
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.krr import KRR
from tests.support.aggregator.browser import watched
from tests.support.aggregator.builders import FRUIT, T0, estimate_of
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.scene import AIR_TIME, SCENE, estimates, number_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RISE = ShareChange("fig", T0 - 600, T0, 0.2, 0.251, 0.051, 0.031, 0.071)
FALL = ShareChange("<b>kiwi</b>", T0 - 300, T0 + 10, 0.4, 0.3, -0.1, -0.15, -0.05)


def test_changes_are_sentences_until_they_are_over(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first; markup in a value is text."""
    set_clock(monkeypatch)
    served.take(estimate_of(FRUIT))
    served.change("fruit", [RISE, FALL])
    with watched(browser, served.address) as shown:
        lines = shown.section().locator(".share-changes li")
        lines.nth(2).wait_for()
        fall, rise, rate = lines.all_inner_texts()
        assert fall.startswith("The share of <b>kiwi</b> changed from 40.0\u00a0% to 30.0\u00a0% since ")
        assert ": by −10.0 percentage points" in fall
        assert rise.endswith("by +5.1 percentage points (95 % interval +3.1 to +7.1).")
        assert rate == "While no share changes, there are at most 0.1 such alarms a year."
        shown.keep("changes")
        served.change("fruit", [structs.replace(RISE, value="")])
        lines.filter(has_text='The share of "" changed').wait_for()
        served.change("fruit", [structs.replace(RISE, value="fig" * 300)])
        lines.filter(has_text=f"The share of {'fig' * 20}… changed").wait_for()
        served.change("fruit", [])
        shown.section().locator(".share-changes").wait_for(state="hidden")


def test_the_newest_final_window_shows_that_a_share_came_back(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the sentence, in a part that is not announced; what noise took below 0 is shown as 0."""
    set_clock(monkeypatch)
    served.take(estimate_of(FRUIT))
    served.change("fruit", [structs.replace(RISE, before=-0.004)], {"fig": 0.2019, "kiwi": 0.1})
    with watched(browser, served.address) as shown:
        line = shown.section().locator(".share-changes li").first
        line.filter(has_text="In the newest final window: 20.2\u00a0%.").wait_for()
        assert line.inner_text().startswith("The share of fig changed from 0.0\u00a0% to 25.1\u00a0% since ")
        assert line.locator("[aria-live=off]").inner_text() == " In the newest final window: 20.2\u00a0%."
        shown.keep("changes-newest")
        served.change("fruit", [structs.replace(RISE, partial=True)])
        line.filter(
            has_text="to +7.1). That may be a part of it, as it began in that window: the next"
        ).wait_for()
        served.change("fruit", [RISE], {"fig": -0.001})
        line.filter(has_text="In the newest final window: 0.0\u00a0%.").wait_for()


def test_collections_whose_changes_are_not_looked_for_say_so(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    """And which command finds them; the others have no such sentence."""
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
        with watched(browser, served.address) as shown:
            sentences = {}
            for name in ("fruit", "many", "hashed", "text"):
                shown.section(name).locator(".history .scale").wait_for()
                part = shown.section(name).locator(".unwatched")
                sentences[name] = part.inner_text() if part.is_visible() else ""
            shown.keep("unwatched")
    assert sentences == {
        "fruit": "",
        "many": "Changes of shares are not looked for here: there are more than 200 values. "
        "deniable changes many finds those of a period.",
        "hashed": "Changes of shares are looked for anew after a restart of the worker: former windows have "
        "too many counters. deniable compare hashed finds which shares differ between two periods.",
        "text": "Changes of shares are not looked for here: the list of texts grows. "
        "deniable decode text --grow, for each of two periods, shows which texts were frequent then.",
    }


def test_change_of_a_mean_and_long_lists(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    """In units of the number, at the collection's rate; of many changes the newest ten. Long names fit."""
    set_clock(monkeypatch, T0 + 30)
    number = replace(AIR_TIME, change_alarms_a_year=12.0)
    with Served(SCENE | {number.fingerprint: number}).serving() as served:
        served.take(*number_estimates(), *estimates())
        served.change("air-time", [ShareChange("mean", T0 - 600, T0, 150.25, 161.5, 11.25, 8.0, 14.5)])
        many = [ShareChange(f"v{each}{'v' * 80}", T0, T0, 0.1, 0.2, 0.1, 0.05, 0.15) for each in range(30)]
        served.change("carrier", many)
        with watched(browser, served.address, viewport={"width": 360, "height": 800}) as shown:
            lines = shown.section("air-time").locator(".share-changes li")
            lines.nth(1).wait_for()
            mean, rate = lines.all_inner_texts()
            assert mean.startswith("The mean changed from 150.3 to 161.5 since ")
            assert mean.endswith("by +11.25 (95 % interval +8 to +14.5).")
            assert rate == "While the mean does not change, there are at most 12 such alarms a year."
            long = shown.section("carrier").locator(".share-changes li").all_inner_texts()
            assert len(long) == 12
            assert "v29v" in long[0]
            assert long[10] == "20 earlier changes: see deniable changes."
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
            assert violations(shown.page) == []
            shown.keep("changes-phone")


def test_intervals_for_all_values_replace_single_ones(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch)
    record = estimate_of(FRUIT)
    served.take(record)
    with watched(browser, served.address) as shown:
        box = shown.section().get_by_role("checkbox", name="Intervals that hold for all values at once")
        box.wait_for()
        single = shown.rows()
        box.check()
        together = shown.rows()
        for place, value in enumerate(record.values):
            ends = [f"{100 * end:.1f}" for end in (record.low_all[place], record.high_all[place])]
            if value in together:
                assert together[value][-1] == " – ".join(ends)
                assert together[value][-1] != single[value][-1]
        box.uncheck()
        assert shown.rows() == single
