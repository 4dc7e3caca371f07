"""The charts, their tables and the what-if in a real Chromium: drawing, text, pointer and keyboard control.

The shapes are tested in Node, too: see page/shapes.test.mjs.
"""

import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

from deniable.aggregator.records.estimate import (
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberDensity,
    NumberMean,
    NumberQuantile,
    Other,
    PairMargin,
    PairRecord,
)
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.planning import expected_std_error, smallest_detectable
from tests.support.aggregator.browser import Watched, visit
from tests.support.aggregator.builders import FRUIT, T0, changed, estimate_of
from tests.support.aggregator.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page


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


def paths_of(part: Any) -> list[str]:
    paths: list[str] = [path.get_attribute("d") for path in part.locator("path").all()]
    return paths


def test_history_shows_each_known_window(tab: "Page", served: Served) -> None:
    """In panels whose heights match the numbers, with a gap at the missing window, and as a table.

    The pointer looks at the nearest window.
    """
    served.take(*windows())
    with visit(tab, served.address) as shown:
        wait_for_all(shown)
        assert panels(shown) == [
            "apple 50.0 % 40.0 – 60.0 60 % 30 0 23:59:20 Jan 1",
            "<i>fig</i> 40.0 % 30.0 – 50.0 80 % 40 0 23:59:20 Jan 1",
        ]
        area, marks, line, cursor, changes, lone = paths_of(shown.section().locator(".panel").first)
        assert line == "M0 33.33L25 50M75 66.67L100 16.67"
        assert area == "M0 50L25 66.67L25 33.33L0 16.67ZM75 83.33L100 33.33L100 0L75 50Z"
        assert cursor == "M100 0V100"
        assert marks == changes == lone == ""
        chart = shown.section().locator(".chart").first
        width = chart.evaluate("chart => chart.clientWidth")
        chart.hover(position={"x": 0.3 * width, "y": 5})
        assert panels(shown)[0].startswith("apple 30.0 %")
        shown.page.mouse.move(0, 0)
        assert panels(shown)[0].startswith("apple 50.0 %")
        check_table(shown)


def test_two_windows_are_in_the_table_alone(tab: "Page", served: Served) -> None:
    """Two points are no line, and dots at both ends of a panel say nothing."""
    served.take(*windows()[-2:])
    with visit(tab, served.address) as shown:
        shown.section().locator(".scale", has_text="Two windows so far").wait_for()
        assert not shown.section().locator(".panels").is_visible()
        shown.section().get_by_text("The same as a table").click()
        shown.section().locator(".history table").get_by_role("row", name="999").wait_for()


def test_a_longer_bar_is_broken_and_impossible_counts_are_said(tab: "Page", served: Served) -> None:
    """The named values set the scale; the bar of all others is beyond it."""
    impossible = changed(
        estimate_of(),
        values=["apple"],
        frequency=[0.1],
        count=[10.0],
        std_error=[0.01],
        low=[0.08],
        high=[0.12],
        low_all=[],
        high_all=[],
        unbiased=[],
        significant=[True],
        other=Other(0.9, 0.01, 0.88, 0.92),
        diagnostics={"fit_p_value": 1e-9},
    )
    served.take(impossible)
    with visit(tab, served.address) as shown:
        shown.section().get_by_text("The counts contradict the parameters").wait_for()
        rows = shown.section().locator(".estimate tr.broken")
        assert rows.locator("th").all_inner_texts() == ["other"]
        assert shown.section().locator(".estimate tbody tr").count() == 1
        shown.keep("broken")


def check_table(shown: Watched) -> None:
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


def test_keyboard_chooses_a_window(tab: "Page", served: Served) -> None:
    """All parts show it, also when a new one arrives; the newest, if selected, gives way to the new one."""
    first, *others, last = windows()
    served.take(first, *others)
    with visit(tab, served.address) as shown:
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


def test_change_of_parameters_is_marked_and_its_shares_are_joined(tab: "Page", served: Served) -> None:
    """The line goes on across a change of epsilon; another list without `other` ends it.

    A window between gaps is a point, several times as wide as the line; a value that it lacks is not drawn.
    """
    first, second, third, last = windows()
    former: dict[str, Any] = {"fingerprint": "0" * 16, "epsilon": 1.0}
    before = [changed(each, **former) for each in (first, second)]
    apart = changed(last, window_start=T0 + 10, window_end=T0 + 20, values=["apple", "kiwi"])
    served.take(*before, changed(third, window_start=T0 - 20, window_end=T0 - 10), apart)
    with visit(tab, served.address) as shown:
        wait_for_all(shown)
        said = shown.section().locator(".changes")
        said.filter(has_text="Other parameters before").wait_for()
        assert said.inner_text().endswith(": epsilon 1 to 2; only then: <i>fig</i>; only now: fig, kiwi.")
        panel = shown.section().locator(".panel").first
        _, mark, line, _, changes, lone = paths_of(panel)
        assert changes == "M40 0V100"
        assert line == "M0 33.33L20 50L40 66.67M100 16.67h0"
        assert (lone, mark) == ("M100 16.67h0", "M100 33.33V0")
        of_line, of_point = (
            panel.locator("path")
            .nth(place)
            .evaluate("path => parseFloat(getComputedStyle(path).strokeWidth)")
            for place in (2, 5)
        )
        assert of_point >= 3 * of_line
        shown.section().get_by_text("The same as a table").click()
        rows = shown.section().locator(".history tbody th")
        rows.nth(3).wait_for()
        marked = ["(other parameters)" in each for each in rows.all_inner_texts()]
        assert marked == [False, False, True, True]
        shown.section().get_by_role("slider", name="Window").press("ArrowLeft")
        assert [each for each in panels(shown) if each.startswith("kiwi – not known")]
        for each in before:
            served.take(changed(each, other=None, revision=each.revision + 1))
        said.filter(has_text="Not comparable").wait_for()
        assert paths_of(panel)[2].count("M") == 3
        shown.keep("lone-window")


def test_plan_matches_the_planner(tab: "Page", served: Served) -> None:
    """For the reports of the newest window, however many, initially at the collection's own epsilon."""
    served.take(changed(estimate_of(), reports=20_000))
    with visit(tab, served.address) as shown:
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
        for step, (reports, said, error) in enumerate(
            [(1, "1 report", "over 100 %"), (10**9, "1,000,000,000 reports", "0.053 %")], 1
        ):
            start = T0 + 10 * step
            served.take(changed(estimate_of(), reports=reports, window_start=start, window_end=start + 10))
            plan.locator(".reports-planned", has_text=said).wait_for()
            assert plan.locator(".errors .then").inner_text() == error


def figures(mechanism: KRR) -> list[str]:
    """Standard error and smallest detectable share in percent, to two digits and at least one decimal."""
    found = [expected_std_error(mechanism, 20_000), smallest_detectable(mechanism, 20_000, 3)]
    return [f"{100 * share:.{max(1, 1 - math.floor(math.log10(100 * share)))}f} %" for share in found]


def pair_of_carriers() -> EstimateRecord:
    """A pair that says nothing of one row, and leaves one pair out."""
    by_carrier = ConditionalShares([0.8, 0.2, 0.5], [0.1, 0.1, None], [0.6, 0.0, 0.0], [1.0, 0.4, 1.0])
    by_origin = ConditionalShares([1.0, 0.7, 0.3], [None, 0.1, 0.1], [0.0, 0.4, 0.1], [1.0, 0.9, 0.6])
    carriers, origins = ["AA", "<b>B6</b>"], ["EWR", "JFK"]
    margins = [
        PairMargin("carrier", carriers, [0.9, 0.1], [0.01] * 2, [0.88, 0.08], [0.92, 0.12], [True] * 2),
        PairMargin("origin", origins, [0.75, 0.25], [0.01] * 2, [0.7, 0.2], [0.8, 0.3], [True] * 2),
    ]
    test = IndependenceTest(9.5, 1, 0.00205, True)
    return changed(
        estimate_of(),
        pair=PairRecord([0, 0, 1], [0, 1, 1], margins, by_carrier, by_origin, test),
        values=["AA / EWR", "AA / JFK", "<b>B6</b> / JFK"],
        frequency=[0.7, 0.2, 0.1],
        count=[70.0, 20.0, 10.0],
        std_error=[0.1] * 3,
        low=[0.5, 0.0, 0.0],
        high=[0.9, 0.4, 0.3],
        significant=[True] * 3,
    )


def test_pair_has_tables_of_conditional_shares_in_both_directions(tab: "Page", served: Served) -> None:
    """Each share is above its interval; a row that says nothing has `?`, a pair left out no text."""
    record = pair_of_carriers()
    served.take(record)
    with visit(tab, served.address) as shown:
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
        record.pair.margins[0].low[0] = 0.66
        tiny = msgspec.structs.replace(record.pair, independence=IndependenceTest(95.0, 1, 5.011e-33, True))
        served.take(changed(record, revision=2, pair=tiny))
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


def test_number_is_drawn_as_a_density_with_its_figures(tab: "Page", served: Served) -> None:
    """Heights are shares of the largest, 0.6; the rows with their intervals are in the table."""
    served.take(
        changed(
            estimate_of(),
            values=["2", "12"],
            density=NumberDensity(2.0, 22.0, [0.6, 0.4]),
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
                NumberQuantile(0.5, 12.5, 12.25, 12.75),
            ],
        )
    )
    with visit(tab, served.address) as shown:
        density = shown.section().locator(".density")
        density.locator(".mean", has_text="Mean").wait_for()
        texts = [density.locator(name).inner_text() for name in (".mean", ".quantiles", ".top", ".half")]
        ticks = density.locator(".numbers span").all_inner_texts()
        line, median = paths_of(density)
        rows = shown.section().locator(".estimate tbody tr")
        names = rows.locator("th").all_inner_texts()
        intervals = rows.locator(".interval").all_inner_texts()
        density.get_by_label("Logarithmic axis").check()
        density.locator(".numbers span").get_by_text("12", exact=True).wait_for()  # "2" is in 20, too
        log_ticks = density.locator(".numbers span").all_inner_texts()
        assert not shown.section().locator(".plan").is_visible()
    assert texts == [
        "Mean -1,235 (-1,240 – -1,230)",
        "10\u00a0% below -8 (-8.5 – -7) · Median 12.5 (12.25 – 12.75)",
        "60\u00a0%",
        "30",
    ]
    assert names == ["2 to 12", "12 to 22"]
    assert intervals == ["40.0 – 80.0", "20.0 – 60.0"]
    assert ticks == ["5", "10", "15", "20"]
    assert log_ticks == ["2", "12"]
    assert median == "M52.5 0V100"
    assert line == "M25 0L75 33.33"
