"""The page shows shares that changed, and intervals for all values at once, in a real Chromium."""

from typing import TYPE_CHECKING

import pytest

from aggregator.records.share_change import ShareChange
from tests.support.aggregator.browser import watched
from tests.support.aggregator.builders import FRUIT, T0, estimate_of
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
        assert fall.startswith("The share of <b>kiwi</b> changed from 40.0 % to 30.0 % since ")
        assert ": by −10.0 percentage points" in fall
        assert rise.endswith("by +5.1 percentage points (95 % interval +3.1 to +7.1).")
        assert rate == "While no share changes, there are at most 0.1 such alarms a year."
        shown.keep("changes")
        served.change("fruit", [])
        shown.section().locator(".share-changes").wait_for(state="hidden")


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
