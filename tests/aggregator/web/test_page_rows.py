"""Rows of an estimate in a real Chromium: searched, sorted, in steps, and as CSV."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deniable
from aggregator.records.estimate import EstimateRecord, Other
from tests.support.aggregator.browser import Watched, watched
from tests.support.aggregator.builders import T0, changed, estimate_of
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.scene import AIR_TIME, number_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FORMULAS = ["=1+1", "+A1", "-2+3", "@SUM(A1)", "\tx", "-10", "+3.5e2", 'quo"te, comma', "Écluse", ""]


def of_values(values: list[str]) -> EstimateRecord:
    """Return an estimate of these values, each with a smaller share than the one before, all found."""
    shares = [0.5 / (place + 1) ** 2 for place in range(len(values))]
    return changed(
        estimate_of(),
        values=values,
        frequency=shares,
        count=[1000 * share for share in shares],
        low=[share / 2 for share in shares],
        high=[2 * share for share in shares],
        std_error=[None, *[0.1 + place / 7 for place in range(1, len(values))]],
        significant=[True] * len(values),
        other=Other(0.1, 0.3, 0.0, 0.4),
        reports=1000,
    )


def downloaded(shown: Watched, folder: Path, name: str = "fruit") -> Path:
    """Press the button, and return the file."""
    with shown.page.expect_download() as found:
        shown.section(name).get_by_role("button", name="Download CSV").first.click()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    return path


def test_search_finds_values_whatever_their_case_and_accents(browser: "Browser", served: Served) -> None:
    """Rows, the history and the count follow; other values are not shown."""
    record = of_values([f"value {place:03}" for place in range(150)] + ["Écluse", "ecluse 2"])
    served.take(changed(record, window_start=T0 - 10, window_end=T0), record)
    with watched(browser, served.address) as shown:
        section = shown.section()
        section.get_by_role("button", name="Show 132 more").wait_for()
        section.get_by_label("Search values").fill("ECLUSE")
        section.locator(".matches", has_text="“ECLUSE” is in 2 of 152 values.").wait_for()
        assert [*shown.rows()] == ["Écluse", "ecluse 2"]
        section.get_by_label("Search values").fill("absent")
        section.locator(".matches", has_text="“absent” is in 0 of 152 values.").wait_for()
        assert shown.rows() == {}
        section.get_by_label("Search values").fill("")
        section.get_by_role("button", name="Show 132 more").wait_for()
        assert len(shown.rows()) == 21  # with the other ones


def test_search_says_what_it_cannot_find(browser: "Browser", served: Served) -> None:
    record = changed(of_values([f"value {place:03}" for place in range(30)]), omitted=1234)
    served.take(record)
    with watched(browser, served.address) as shown:
        shown.section().get_by_label("Search values").fill("029")
        expected = "“029” is in 1 of 30 values. Not listed, so not found: the 1,234 estimated lowest."
        shown.section().locator(".matches", has_text=expected).wait_for()


def test_heads_sort_both_ways_and_back(browser: "Browser", served: Served) -> None:
    """Numbers in texts by size; a screen reader is told of the order."""
    served.take(of_values(["10", "9", "b", "a"]))
    with watched(browser, served.address) as shown:
        section = shown.section()
        own = ["10", "9", "b", "a", "other"]
        orders = {"Value": [["9", "10", "a", "b"], ["b", "a", "10", "9"]], "Share, %": [own[:4], own[3::-1]]}
        section.locator("tbody tr[data-value]").first.wait_for()
        assert [*shown.rows()] == own
        for name, ways in orders.items():
            button = section.get_by_role("button", name=name)
            seen = []
            for _ in range(3):
                button.click()
                seen.append([*shown.rows()][:4])
            assert seen == [*ways, own[:4]]
        assert section.locator("th[aria-sort=none]").count() == 3


def test_thousands_of_rows_come_in_steps(browser: "Browser", monkeypatch: pytest.MonkeyPatch) -> None:
    """All 2,000 can be seen at once; a button that goes gives its focus to one that stays."""
    set_clock(monkeypatch, T0 + 11)
    collections = crowd(1, 2000)
    with Served(collections).serving() as served:
        served.take(*crowd_estimates([*collections.values()], 1))
        with watched(browser, served.address) as shown:
            section = shown.section("shop-000")
            rows = section.locator(".estimate tbody tr")
            section.locator(".estimate .more").wait_for()
            first = rows.count()
            assert 0 < first <= 20
            section.locator(".estimate .more").press("Enter")
            assert rows.count() == first + 200
            section.get_by_role("button", name="Show all 2,000").press("Enter")
            assert rows.count() == 2000
            assert shown.page.evaluate("document.activeElement.textContent") == "Show fewer"
            shown.page.keyboard.press("Enter")
            assert rows.count() == first
            assert shown.page.evaluate("document.activeElement.textContent") == "Show 200 more"


def test_csv_has_the_columns_and_figures_of_read_estimates(
    browser: "Browser", served: Served, tmp_path: Path
) -> None:
    """To the last digit: what the analyst's function reads from the file and from the worker are alike."""
    values = [f"value {place}" for place in range(5)]
    served.take(of_values(values))
    with watched(browser, served.address, accept_downloads=True) as shown:
        shown.status("Live")
        path = downloaded(shown, tmp_path)
    assert path.name == "fruit-2026-01-01T000000Z.csv"
    options = {"collection": "fruit", "provisional": True, "other": True}
    from_file = deniable.read_estimates(files=path, **options)
    from_worker = deniable.read_estimates(worker=served.address, **options)
    assert from_file == from_worker
    assert from_file["value"].to_pylist() == [*values, "(other)"]


def test_csv_has_exactly_the_rows_shown(browser: "Browser", served: Served, tmp_path: Path) -> None:
    served.take(of_values([f"value {place:02}" for place in range(60)]))
    with watched(browser, served.address, accept_downloads=True) as shown:
        section = shown.section()
        section.get_by_label("Search values").fill("value 1")
        section.get_by_role("button", name="Value").click()
        section.get_by_role("button", name="Value").click()
        path = downloaded(shown, tmp_path)
        expected = [*shown.rows()]
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["value"] for row in rows] == expected == [f"value {place}" for place in range(19, 9, -1)]


def test_csv_of_hostile_values_holds_no_formula(browser: "Browser", served: Served, tmp_path: Path) -> None:
    """An apostrophe stands before what a spreadsheet would calculate; other texts are unchanged."""
    served.take(of_values(FORMULAS))
    with watched(browser, served.address, accept_downloads=True) as shown:
        shown.status("Live")
        text = downloaded(shown, tmp_path).read_text()
    found = [row["value"] for row in csv.DictReader(io.StringIO(text))]
    assert found == [*(f"'{value}" for value in FORMULAS[:5]), *FORMULAS[5:], "(other)"]


def test_csv_of_a_number_has_its_steps(
    browser: "Browser", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_clock(monkeypatch, T0 + 30)
    with Served({AIR_TIME.fingerprint: AIR_TIME}).serving() as served:
        served.take(*number_estimates())
        with watched(browser, served.address, accept_downloads=True) as shown:
            shown.section("air-time").locator(".density .mean", has_text="Mean").wait_for()
            path = downloaded(shown, tmp_path, "air-time")
            table = deniable.read_estimates(files=path, collection="air-time", provisional=True)
            assert len(table) == 240


def test_window_no_longer_kept_is_explained(browser: "Browser", served: Served) -> None:
    """Here there is no topic to read it from either."""
    served.take(estimate_of())
    with watched(browser, f"{served.address}#fruit.window={T0 - 1000}", refused=404) as shown:
        shown.section().locator(".trouble", has_text="is not kept here").wait_for()
        shown.section().get_by_role("button", name="Follow the newest").click()
        shown.section().locator(".reports", has_text="40").wait_for()
