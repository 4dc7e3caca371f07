"""Texts in a real Chromium: new ones, long ones and empty ones are marked, and a list without any says so.

What an empty list says is tested in Node: see page/sentences.test.mjs.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.offline.estimate_table import printable_name
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.support.aggregator.browser import visit
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECONDS = FRUIT.window_seconds
COLUMNS = ("values", "frequency", "count", "std_error", "low", "high", "significant")


def test_texts_are_marked_and_named(tab: "Page", monkeypatch: pytest.MonkeyPatch) -> None:
    """New for five windows, if growing found them; with dots, if they are as long as the last level.

    Of the same window: a value of the file, a text found four windows ago, and one found five ago. Length is
    in bytes of UTF-8, as the tree cuts them; a value of any other mechanism has no dots. An empty text has
    the name that commands print, also in the history; a value that reads like the name has another one.
    """
    set_clock(monkeypatch)
    tree = PrefixTree.from_epsilon((1, 3), 4.0, 40)
    search = Collection("search", tree, window_seconds=SECONDS, candidates=("fig", "äb", "ab"))
    counts = np.full((2, search.width), 500)
    found = WindowCounts(counts, counts.sum(axis=1) // tree.oracle.hash_buckets, 1, 0)
    result = window_estimate.estimate(search, found)
    empty = ["", '""', "kiwi"]
    place = changed(estimate_of(PLACE), values=empty, significant=[True] * 3)
    with Served({each.fingerprint: each for each in (search, FRUIT, PLACE)}).serving() as served:
        for start in (T0 - SECONDS, T0):
            served.take(window_estimate.record_of(search, start, found, result, final=True))
        served.take(changed(estimate_of(), discovered_at=[None, T0 - 4 * SECONDS, T0 - 5 * SECONDS]))
        for start in (T0 - 2 * SECONDS, T0 - SECONDS):
            served.take(changed(place, window_start=start, window_end=start + SECONDS, final=True))
        served.take(place)
        with visit(tab, served.address) as shown:
            fruit, texts, places = (shown.section(name) for name in ("fruit", "search", "place"))
            fruit.locator('.estimate tr[data-value="fig"]').get_by_text("new", exact=True).wait_for()
            assert fruit.locator(".new:visible").count() == 1
            assert {"apple", "kiwi"} < {*shown.rows("fruit")}
            texts.locator(".estimate .more").click()
            texts.locator('.estimate tr[data-value="fig"]').wait_for()
            assert set(shown.rows("search")) == {"fig…", "äb…", "ab", "other"}
            places.locator('.estimate tr[data-value="kiwi"]').wait_for()
            assert set(shown.rows("place")) - {"other"} == {*map(printable_name, empty)}
            places.locator(".panels .value", has_text='""').first.wait_for()
            places.get_by_text("The same as a table").click()
            columns = places.locator(".history th[scope=col]")
            columns.first.wait_for()
            heads = columns.all_inner_texts()
            assert '"", %' in heads
            assert not any(each.startswith(", ") for each in heads)
            shown.keep("texts")


def test_an_empty_list_has_no_axis_history_or_file(tab: "Page", served: Served) -> None:
    """They come with the first values; the share of all others has an axis that it fits on."""
    empty: dict[str, Any] = {name: [] for name in COLUMNS} | {"diagnostics": {}}
    for start in (T0 - SECONDS, T0):
        window: dict[str, Any] = {"window_start": start, "window_end": start + SECONDS, "final": start < T0}
        served.take(changed(estimate_of(), other=None, **window, **empty))
    with visit(tab, served.address) as shown:
        section = shown.section()
        section.locator("caption", has_text="deniable decode fruit --grow finds frequent texts.").wait_for()
        section.locator(".scale", has_text="No values are listed now, so there are no shares").wait_for()
        assert section.locator(".estimate .save").is_hidden()
        assert section.locator(".estimate thead").is_hidden()
        shown.keep("empty-list")
        other = estimate_of().other
        served.take(changed(estimate_of(), revision=2, **empty))
        section.locator(".estimate tfoot tr").wait_for()
        assert section.locator(".estimate thead").is_visible()
        assert other is not None
        last = section.locator(".estimate .axis span").last.inner_text()
        assert float(last) > 100 * other.frequency
        growing = empty | {"diagnostics": {"found_texts": 0.0}}
        served.take(changed(estimate_of(), revision=3, **growing))
        said = "what growing finds is listed from the next window on."
        section.locator("caption", has_text=said).wait_for()
        served.take(changed(estimate_of(), revision=4))
        section.locator('.estimate tr[data-value="fig"]').wait_for()
        assert section.locator(".estimate .save").is_visible()
