"""The history over windows and the what-if in a real Chromium: drawing, text and keyboard control."""

import math
import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from aggregator.records.estimate import (
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberMean,
    NumberQuantile,
    PairMargin,
    PairRecord,
)
from estimators.mechanisms.krr import KRR
from estimators.planning import expected_std_error, smallest_detectable
from tests.support.aggregator.browser import Watched, watched
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.aggregator.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def windows() -> list[EstimateRecord]:
    """Five windows; the third is missing and the fifth is provisional."""
    shares = {-4: 0.40, -3: 0.30, -1: 0.20, 0: 0.50}
    return [
        changed(
            estimate_of(),
            window_start=T0 + 10 * step,
            window_end=T0 + 10 * step + 10,
            final=step < 0,
            reports=1000 + step,
            values=["apple", "<i>fig</i>"],
            frequency=[share, 0.9 - share],
            count=[100 * share, 90 - 100 * share],
            low=[share - 0.1, 0.8 - share],
            high=[share + 0.1, 1 - share],
            std_error=[0.05, 0.05],
            significant=[True, True],
        )
        for step, share in shares.items()
    ]


def wait_for_all(shown: Watched, windows: int = 4) -> None:
    """Wait until this many windows, which arrive one by one, are shown."""
    shown.section().locator(".scale", has_text=f"The last {windows} windows").wait_for()


def panels(shown: Watched) -> list[str]:
    return [" ".join(text.split()) for text in shown.section().locator(".panel").all_inner_texts()]


def test_history_shows_each_known_window(browser: "Browser", served: Served) -> None:
    """Heights match the numbers, and the line has a gap at the missing window."""
    served.take(*windows())
    with watched(browser, served.address) as shown:
        wait_for_all(shown)
        assert panels(shown) == [
            "apple 50.0 % 40.0 – 60.0 60 % 30 0 23:59:20 Jan 1",
            "<i>fig</i> 40.0 % 30.0 – 50.0 80 % 40 0 23:59:20 Jan 1",
        ]
        area, _, line, cursor, changes, alone = (
            path.get_attribute("d") for path in shown.section().locator(".panel").first.locator("path").all()
        )
    assert line == "M0 33.33L25 50M75 66.67L100 16.67"
    assert area == "M0 50L25 66.67L25 33.33L0 16.67ZM75 83.33L100 33.33L100 0L75 50Z"
    assert cursor == "M100 0V100"
    assert changes == alone == ""


def test_keyboard_chooses_a_window(browser: "Browser", served: Served) -> None:
    """All parts show it, also when a new one arrives; the newest, if selected, gives way to the new one."""
    first, *others, last = windows()
    served.take(first, *others)
    with watched(browser, served.address) as shown:
        slider = shown.section().get_by_role("slider", name="Window")
        wait_for_all(shown, 3)
        served.take(last)
        shown.section().locator(".moment", has_text="00:00:00").wait_for()
        slider.press("ArrowLeft")
        slider.press("ArrowLeft")
        reported = slider.get_attribute("aria-valuetext") or ""
        assert re.search(
            r"23:59:30 – .*23:59:40 UTC, final, 997 reports; apple 30\.0 %, 20\.0 – 40\.0; ", reported
        )
        assert panels(shown)[0].startswith("apple 30.0 %")
        shown.section().locator(".reports", has_text="997").wait_for()
        assert shown.rows()["apple"][1:] == ["30.0", "20.0 – 40.0"]
        served.take(changed(last, window_start=T0 + 10, window_end=T0 + 20))
        shown.section().locator(".slider input[max='4']").first.wait_for()
        assert panels(shown)[0].startswith("apple 30.0 %")
        assert shown.section().locator(".reports").inner_text() == "997"
        shown.section().get_by_role("button", name="Follow the newest").click()
        shown.section().locator(".window", has_text="00:00:10").wait_for()
        assert panels(shown)[0].startswith("apple 50.0 %")


def test_pointer_chooses_the_nearest_window(browser: "Browser", served: Served) -> None:
    served.take(*windows())
    with watched(browser, served.address) as shown:
        wait_for_all(shown)
        chart = shown.section().locator(".chart").first
        width = chart.evaluate("chart => chart.clientWidth")
        chart.hover(position={"x": 0.3 * width, "y": 5})
        assert panels(shown)[0].startswith("apple 30.0 %")
        shown.page.mouse.move(0, 0)
        assert panels(shown)[0].startswith("apple 50.0 %")


def test_history_is_also_a_table(browser: "Browser", served: Served) -> None:
    served.take(*windows())
    with watched(browser, served.address) as shown:
        wait_for_all(shown)
        shown.section().get_by_text("The same as a table").click()
        table = shown.section().locator(".history table")
        table.get_by_role("row", name="996").wait_for()  # filled by an event after the click
        rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()]
    assert rows[0] == ["Window", "Reports", "apple, %", "<i>fig</i>, %"]
    assert [row[1:] for row in rows[1:]] == [
        ["1,000", "50.0 (40.0 – 60.0)", "40.0 (30.0 – 50.0)"],
        ["999", "20.0 (10.0 – 30.0)", "70.0 (60.0 – 80.0)"],
        ["997", "30.0 (20.0 – 40.0)", "60.0 (50.0 – 70.0)"],
        ["996", "40.0 (30.0 – 50.0)", "50.0 (40.0 – 60.0)"],
    ]
    assert [("provisional" in row[0]) for row in rows[1:]] == [True, False, False, False]


def test_value_absent_from_a_window_is_not_drawn(browser: "Browser", served: Served) -> None:
    *_, last = windows()
    earlier = changed(last, window_start=T0 - 10, window_end=T0, values=["apple", "kiwi"])
    served.take(earlier, last)
    with watched(browser, served.address) as shown:
        wait_for_all(shown, 2)
        shown.section().get_by_role("slider", name="Window").press("ArrowLeft")
        assert panels(shown)[1].startswith("<i>fig</i> – not known")
        paths = shown.section().locator(".panel").nth(1).locator("path")
        assert paths.nth(2).get_attribute("d") == "M100 20h0"


def test_window_between_gaps_is_drawn_as_a_point(browser: "Browser", served: Served) -> None:
    """A line of no length shows its width alone: the point is several times as wide as the line."""
    first, second, _, last = windows()
    served.take(first, second, changed(last, window_start=T0 + 20, window_end=T0 + 30))
    apart = changed(second, window_start=T0, window_end=T0 + 10, final=True)
    served.take(apart)
    with watched(browser, served.address) as shown:
        wait_for_all(shown)
        paths = shown.section().locator(".panel").first.locator("path")
        mark, line, point = (paths.nth(place).get_attribute("d") for place in (1, 2, 5))
        widths = [
            paths.nth(place).evaluate("path => parseFloat(getComputedStyle(path).strokeWidth)")
            for place in (2, 5)
        ]
        shown.keep("lone-window")
    assert point == "M66.67 50h0M100 16.67h0"
    assert mark == "M66.67 66.67V33.33M100 33.33V0"
    assert (line or "").startswith("M0 33.33L16.67 50M")
    assert widths[1] >= 3 * widths[0]


def other_parameters(record: EstimateRecord, **fields: object) -> EstimateRecord:
    return changed(record, fingerprint="0" * 16, epsilon=1.0, **fields)


def test_change_of_parameters_is_marked_and_its_shares_are_joined(browser: "Browser", served: Served) -> None:
    """The line goes on across a change of epsilon; another list without `other` ends it."""
    first, second, third, _ = windows()
    before = [other_parameters(each) for each in (first, second)]
    served.take(*before, changed(third, window_start=T0 - 20, window_end=T0 - 10))
    with watched(browser, served.address) as shown:
        wait_for_all(shown, 3)
        said = shown.section().locator(".changes")
        said.filter(has_text="Other parameters before").wait_for()
        assert said.inner_text().endswith(": epsilon 1 to 2; only then: <i>fig</i>; only now: fig, kiwi.")
        paths = shown.section().locator(".panel").first.locator("path")
        assert paths.nth(4).get_attribute("d") == "M100 0V100"
        assert paths.nth(2).get_attribute("d").count("M") == 1  # type: ignore[union-attr]
        shown.section().get_by_text("The same as a table").click()
        rows = shown.section().locator(".history tbody th")
        rows.nth(2).wait_for()
        marked = ["(other parameters)" in each for each in rows.all_inner_texts()]
        assert marked == [False, True, True]
        for each in before:
            served.take(changed(each, other=None, revision=each.revision + 1))
        said.filter(has_text="Not comparable").wait_for()
        assert paths.nth(2).get_attribute("d").count("M") == 2  # type: ignore[union-attr]


def test_plan_matches_the_planner(browser: "Browser", served: Served) -> None:
    """For the reports of the newest window, initially at the collection's own epsilon."""
    served.take(changed(estimate_of(), reports=20_000))
    with watched(browser, served.address) as shown:
        shown.section().get_by_text("What if").click()
        plan = shown.section().locator(".plan")
        plan.locator(".errors .then", has_text="%").wait_for()

        def cells(column: str) -> list[str]:
            return plan.locator(f"tbody .{column}").all_inner_texts()

        now = ["2.00", "7.4", *figures(FRUIT.mechanism)]
        assert (cells("now"), cells("then")) == (now, now)
        assert plan.locator(".reports-planned").inner_text() == "20,000 reports"
        slider = plan.get_by_role("slider")
        slider.press("End")
        assert (cells("now"), cells("then")) == (
            now,
            ["10.00", "22,027", *figures(KRR.from_epsilon(4, 10.0))],
        )
        slider.press("Home")
        assert cells("then") == ["0.10", "1.2", *figures(KRR.from_epsilon(4, 0.1))]
        assert (slider.get_attribute("aria-valuetext") or "").startswith("ε 0.1: standard error 11.8 %, now ")


def figures(mechanism: KRR) -> list[str]:
    """Standard error and smallest detectable share in percent, to two digits and at least one decimal."""
    found = [expected_std_error(mechanism, 20_000), smallest_detectable(mechanism, 20_000, 3)]
    return [f"{100 * share:.{max(1, 1 - math.floor(math.log10(100 * share)))}f} %" for share in found]


@pytest.mark.parametrize("reports", [1, 10**9])
def test_plan_of_any_number_of_reports_is_shown(browser: "Browser", served: Served, reports: int) -> None:
    served.take(changed(estimate_of(), reports=reports))
    with watched(browser, served.address) as shown:
        shown.section().get_by_text("What if").click()
        shown.section().locator(".plan .errors .then", has_text="%").wait_for()


def test_pair_of_few_reports_has_no_verdict(browser: "Browser", served: Served) -> None:
    values, shares = ["a"], ConditionalShares([1.0], [None], [0.0], [1.0])
    margins = [PairMargin(name, values, [1.0], [0.1], [0.8], [1.0], [True]) for name in ("carrier", "origin")]
    pair = PairRecord([0], [0], margins, shares, shares, IndependenceTest(0.0, 0, 1.0, False))
    found = changed(
        estimate_of(),
        values=["a / a"],
        frequency=[1.0],
        count=[100.0],
        std_error=[0.1],
        low=[0.8],
        high=[1.0],
        significant=[True],
        pair=pair,
    )
    served.take(found)
    with watched(browser, served.address) as shown:
        sentence = shown.section().locator(".pair .independence", has_text="depend").inner_text()
    assert sentence == "Too few reports to test whether carrier and origin depend on each other."


def test_pair_has_tables_of_conditional_shares_in_both_directions(browser: "Browser", served: Served) -> None:
    """Each share is above its interval; a row that says nothing has `?`, a pair left out no text."""
    by_carrier = ConditionalShares([0.8, 0.2, 0.5], [0.1, 0.1, None], [0.6, 0.0, 0.0], [1.0, 0.4, 1.0])
    by_origin = ConditionalShares([1.0, 0.7, 0.3], [None, 0.1, 0.1], [0.0, 0.4, 0.1], [1.0, 0.9, 0.6])
    margins = [
        PairMargin(
            "carrier", ["AA", "<b>B6</b>"], [0.9, 0.1], [0.01, 0.01], [0.88, 0.08], [0.92, 0.12], [True] * 2
        ),
        PairMargin("origin", ["EWR", "JFK"], [0.75, 0.25], [0.01, 0.01], [0.7, 0.2], [0.8, 0.3], [True] * 2),
    ]
    test = IndependenceTest(9.5, 1, 0.00205, True)
    pair = PairRecord([0, 0, 1], [0, 1, 1], margins, by_carrier, by_origin, test)
    columns = {
        "values": ["AA / EWR", "AA / JFK", "<b>B6</b> / JFK"],
        "frequency": [0.7, 0.2, 0.1],
        "count": [70.0, 20.0, 10.0],
        "std_error": [0.1] * 3,
        "low": [0.5, 0.0, 0.0],
        "high": [0.9, 0.4, 0.3],
        "significant": [True] * 3,
    }
    served.take(changed(estimate_of(), pair=pair, **columns))
    with watched(browser, served.address) as shown:
        drawn = shown.section().locator(".pair")
        tables = []
        for summary in ("origin by carrier", "carrier by origin"):
            drawn.locator("summary", has_text=summary).click()
            table = drawn.locator("details", has_text=summary)
            table.locator("tbody tr").first.wait_for()
            tables.append([row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()])
        sentence = drawn.locator(".independence").inner_text()
        captions = drawn.locator("caption").all_inner_texts()
        assert shown.section().locator(".estimate").is_visible()
        margins[0].low[0] = 0.66
        tiny = msgspec.structs.replace(pair, independence=IndependenceTest(95.0, 1, 5.011e-33, True))
        served.take(changed(estimate_of(), revision=2, pair=tiny, **columns))
        drawn.locator(".independence", has_text="p < 1e-6").wait_for()
        assert drawn.locator("td", has_text="66.0 – 92.0").count() == 2  # open tables follow the estimate
    assert sentence == "carrier and origin depend on each other (p = 0.00205, at a false-alarm rate of 5 %)."
    assert tables[0] == [
        ["carrier", "all, %", "EWR", "JFK"],
        ["AA", "90.0\n88.0 – 92.0", "80.0\n60.0 – 100.0", "20.0\n0.0 – 40.0"],
        ["<b>B6</b>", "10.0\n8.0 – 12.0", "", "?"],
        ["all, %", "", "75.0\n70.0 – 80.0", "25.0\n20.0 – 30.0"],
    ]
    assert tables[1] == [
        ["origin", "all, %", "AA", "<b>B6</b>"],
        ["EWR", "75.0\n70.0 – 80.0", "?", ""],
        ["JFK", "25.0\n20.0 – 30.0", "70.0\n40.0 – 90.0", "30.0\n10.0 – 60.0"],
        ["all, %", "", "90.0\n88.0 – 92.0", "10.0\n8.0 – 12.0"],
    ]
    assert [caption.split(",")[0] for caption in captions] == [
        "Share of each origin among the reports with one carrier",
        "Share of each carrier among the reports with one origin",
    ]


def test_number_is_drawn_as_a_density_with_its_figures(browser: "Browser", served: Served) -> None:
    """Instead of a table: heights are shares of the largest upper end, 0.8."""
    served.take(
        changed(
            estimate_of(),
            values=["-10", "0"],
            frequency=[0.6, 0.4],
            count=[60.0, 40.0],
            std_error=[0.1, 0.1],
            low=[0.4, 0.2],
            high=[0.8, 0.6],
            significant=[True, True],
            mean=NumberMean(-1234.5678, 0.5, -1240.0, -1230.0),
            quantiles=[
                NumberQuantile(0.05, -9.0, -9.5, -8.0),
                NumberQuantile(0.1, -8.0, -8.5, -7.0),
                NumberQuantile(0.5, 0.5, 0.25, 0.75),
            ],
        )
    )
    with watched(browser, served.address) as shown:
        density = shown.section().locator(".density")
        density.locator(".mean", has_text="Mean").wait_for()
        texts = [density.locator(name).inner_text() for name in (".mean", ".quantiles", ".top", ".half")]
        ticks = density.locator(".numbers span").all_inner_texts()
        area, line, median = (path.get_attribute("d") for path in density.locator("path").all())
        assert not shown.section().locator(".estimate").is_visible()
        assert not shown.section().locator(".plan").is_visible()
    assert texts == [
        "Mean -1,235 (-1,240 – -1,230)",
        "10\u00a0% below -8 (-8.5 – -7) · Median 0.5 (0.25 – 0.75)",
        "80\u00a0%",
        "40",
    ]
    assert ticks == ["-10", "-5", "0", "5", "10"]
    assert median == "M52.5 0V100"
    assert line == "M25 25L75 50"
    assert area == "M25 50L75 75L75 25L25 0Z"
