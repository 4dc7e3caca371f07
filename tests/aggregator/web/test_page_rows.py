"""Rows of an estimate in a real Chromium: searched, sorted, in steps, and as CSV.

Folding, orders and formulas in files are tested in Node, too: see page/rows.test.mjs.
"""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deniable
from deniable.aggregator.records.estimate import EstimateRecord, Other
from tests.support.aggregator.browser import Watched, visit
from tests.support.aggregator.builders import COLLECTIONS, T0, changed, estimate_of
from tests.support.aggregator.scene import DELAY, delay_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


@pytest.mark.all
def test_rows_are_searched_and_in_steps(tab: "Page", served: Served) -> None:
    """Whatever their case and accents; of thousands, all can be seen at once.

    Rows, the history and the count follow a search. A button that goes gives its focus to one that stays.
    """
    values = [f"value {place:04}" for place in range(1998)] + ["Écluse", "ecluse 2"]
    record = changed(of_values(values), omitted=1234)
    served.take(changed(record, window_start=T0 - 10, window_end=T0), record)
    with visit(tab, served.address) as shown:
        section = shown.section()
        rows = section.locator(".estimate tbody tr")
        more = section.get_by_role("button", name="Show 200 more")
        more.wait_for()
        assert rows.count() == 20
        assert len(shown.rows()) == 21  # with the other ones
        more.press("Enter")
        assert rows.count() == 220
        section.get_by_role("button", name="Show all 2,000").press("Enter")
        assert rows.count() == 2000
        assert shown.page.evaluate("document.activeElement.textContent") == "Show fewer"
        shown.page.keyboard.press("Enter")
        assert rows.count() == 20
        assert shown.page.evaluate("document.activeElement.textContent") == "Show 200 more"
        search = section.get_by_label("Search values")
        search.fill("ECLUSE")
        not_listed = "Not listed, so not found: the 1,234 estimated lowest."
        section.locator(".matches", has_text=f"“ECLUSE” is in 2 of 2,000 values. {not_listed}").wait_for()
        assert [*shown.rows()] == ["Écluse", "ecluse 2"]
        section.locator(".scale", has_text="None of the values found is among the 20 largest").wait_for()
        search.fill("absent")
        section.locator(".matches", has_text="“absent” is in 0 of 2,000 values.").wait_for()
        assert shown.rows() == {}
        search.fill("")
        more.wait_for()
        assert len(shown.rows()) == 21


def test_heads_sort_both_ways_and_back(tab: "Page", served: Served) -> None:
    """Numbers in texts by size; a screen reader is told of the order."""
    served.take(of_values(["10", "9", "b", "a"]))
    with visit(tab, served.address) as shown:
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


def test_files_have_the_rows_shown_and_the_figures_of_read_estimates(
    tab: "Page", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To the last digit: what the analyst's function reads from the file and from the worker are alike.

    An apostrophe stands before what a spreadsheet would calculate. A number has its rows.
    """
    set_clock(monkeypatch)
    values = [f"value {place:02}" for place in range(20)]
    options = {"collection": "fruit", "provisional": True, "other": True}
    with Served(COLLECTIONS | {DELAY.fingerprint: DELAY}).serving() as served:
        served.take(of_values(values), *delay_estimates())
        with visit(tab, served.address) as shown:
            shown.section().locator(".reports", has_text="1,000").wait_for()
            path = downloaded(shown, tmp_path)
            assert path.name == "fruit-2026-01-01T000000Z.csv"
            from_file = deniable.read_estimates(files=path, **options)
            assert from_file == deniable.read_estimates(worker=served.address, **options)
            assert from_file["value"].to_pylist() == [*values, "(other)"]

            served.take(changed(of_values([*values, *FORMULAS]), revision=2))
            section = shown.section()
            section.get_by_label("Search values").fill("value 1")
            section.get_by_role("button", name="Value").click()
            section.get_by_role("button", name="Value").click()
            expected = [f"value {place}" for place in range(19, 9, -1)]
            assert [*shown.rows()] == expected
            assert listed(downloaded(shown, tmp_path)) == expected
            section.get_by_role("button", name="Value").click()
            section.get_by_label("Search values").fill("")
            section.get_by_role("button", name="Show 10 more").click()
            safe = [*(f"'{value}" for value in FORMULAS[:5]), *FORMULAS[5:]]
            assert listed(downloaded(shown, tmp_path)) == [*values, *safe, "(other)"]

            shown.section("delay").locator(".density .mean", has_text="Mean").wait_for()
            path = downloaded(shown, tmp_path, "delay")
            table = deniable.read_estimates(files=path, collection="delay", provisional=True)
            kept = deniable.read_estimates(worker=served.address, collection="delay", provisional=True)
            assert len(table) == 12
            assert table["upper"].null_count == 0
            assert table["upper"].to_pylist() == kept["upper"].to_pylist()[-12:]


def listed(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["value"] for row in csv.DictReader(file)]


def test_window_no_longer_kept_is_explained(tab: "Page", served: Served) -> None:
    """Here there is no topic to read it from either."""
    served.take(estimate_of())
    with visit(tab, f"{served.address}#fruit.window={T0 - 1000}", refused=[404]) as shown:
        shown.section().locator(".trouble", has_text="is not kept here").wait_for()
        shown.section().get_by_role("button", name="Follow the newest").click()
        shown.section().locator(".reports", has_text="40").wait_for()
