"""The page marks texts that growing has found as new for five windows, and says why a list is empty."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aggregator.estimation import window_estimate
from aggregator.records.window_counts import WindowCounts
from deploy.offline.estimate_table import printable_name
from estimators.collection import Collection
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from tests.support.aggregator.browser import watched
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SECONDS = FRUIT.window_seconds
COLUMNS = ("values", "frequency", "count", "std_error", "low", "high", "significant")


def test_found_texts_are_new_for_five_windows(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same window: a value of the file, a text found four windows ago, and one found five ago."""
    set_clock(monkeypatch)
    served.take(changed(estimate_of(), discovered_at=[None, T0 - 4 * SECONDS, T0 - 5 * SECONDS]))
    with watched(browser, served.address) as shown:
        row = shown.section().locator('.estimate tr[data-value="fig"]')
        row.get_by_text("new", exact=True).wait_for()
        assert shown.section().locator(".new:visible").count() == 1
        shown.keep("found-texts")


def test_texts_as_long_as_the_last_level_have_dots(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bytes of UTF-8, as the tree cuts them; a value of any other mechanism has none."""
    set_clock(monkeypatch)
    tree = PrefixTree.from_epsilon((1, 3), 4.0, 40)
    search = Collection("search", tree, window_seconds=SECONDS, candidates=("fig", "äb", "ab"))
    counts = np.full((2, search.width), 500)
    found = WindowCounts(counts, counts.sum(axis=1) // tree.oracle.hash_buckets, 1, 0)
    result = window_estimate.estimate(search, found)
    with Served({each.fingerprint: each for each in (search, FRUIT)}).serving() as served:
        for start in (T0 - SECONDS, T0):
            served.take(window_estimate.record_of(search, start, found, result, final=True))
        served.take(estimate_of())
        with watched(browser, served.address) as shown:
            shown.section("search").locator(".estimate .more").click()
            shown.section("search").locator('.estimate tr[data-value="fig"]').wait_for()
            assert set(shown.rows("search")) == {"fig…", "äb…", "ab", "other"}
            shown.section("fruit").locator('.estimate tr[data-value="fig"]').wait_for()
            assert "fig" in shown.rows("fruit")
            shown.keep("dots")


@pytest.mark.parametrize(
    ("diagnostics", "sentence"),
    [
        ({}, "deniable decode fruit --grow finds frequent texts."),
        ({"found_texts": 0.0}, "what growing finds is listed from the next window on."),
    ],
)
def test_an_empty_list_says_what_to_do(
    browser: "Browser",
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    diagnostics: dict[str, float],
    sentence: str,
) -> None:
    set_clock(monkeypatch)
    served.take(changed(estimate_of(), diagnostics=diagnostics, **{name: [] for name in COLUMNS}))
    with watched(browser, served.address) as shown:
        shown.section().locator("caption", has_text=sentence).wait_for()


def test_an_empty_list_has_no_axis_history_or_file(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come with the first values; the share of all others has an axis that it fits on."""
    set_clock(monkeypatch)
    empty: dict[str, Any] = {name: [] for name in COLUMNS}
    for start in (T0 - SECONDS, T0):
        served.take(
            changed(
                estimate_of(),
                window_start=start,
                window_end=start + SECONDS,
                final=start < T0,
                other=None,
                diagnostics={},
                **empty,
            )
        )
    with watched(browser, served.address) as shown:
        section = shown.section()
        section.locator("caption", has_text="No candidates are listed").wait_for()
        section.locator(".scale", has_text="No values are listed now, so there are no shares").wait_for()
        assert section.locator(".estimate .save").is_hidden()
        assert section.locator(".estimate thead").is_hidden()
        shown.keep("empty-list")
        other = estimate_of().other
        served.take(changed(estimate_of(), revision=2, diagnostics={}, **empty))
        section.locator(".estimate tfoot tr").wait_for()
        assert section.locator(".estimate thead").is_visible()
        assert other is not None
        last = section.locator(".estimate .axis span").last.inner_text()
        assert float(last) > 100 * other.frequency
        served.take(changed(estimate_of(), revision=3))
        section.locator('.estimate tr[data-value="fig"]').wait_for()
        assert section.locator(".estimate .save").is_visible()


def test_an_empty_text_has_the_name_that_commands_print(
    browser: "Browser", served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the table and the history; a value that reads like the name has another one."""
    set_clock(monkeypatch)
    values = ["", '""', "kiwi"]
    served.take(
        changed(estimate_of(), values=values, window_start=T0 - SECONDS, window_end=T0, final=True),
        changed(estimate_of(), values=values),
    )
    with watched(browser, served.address) as shown:
        shown.section().locator('.estimate tr[data-value="kiwi"]').wait_for()
        assert set(shown.rows()) == {*map(printable_name, values), "other"}
        shown.section().locator(".panels .value", has_text='""').first.wait_for()
        shown.section().get_by_text("The same as a table").click()
        columns = shown.section().locator(".history th[scope=col]")
        columns.first.wait_for()
        heads = columns.all_inner_texts()
        assert '"", %' in heads
        assert not any(each.startswith(", ") for each in heads)
        shown.keep("empty-text")
