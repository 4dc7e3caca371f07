"""The three result files of a benchmark run, and how each shows goals."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.comparison.report import bars, results
from bench.comparison.report.figure import Figure, Line, ResultsPart, Table, absolute
from bench.comparison.timing.rounds import FULL, QUICK
from tests.support.messages import PinMessages

if TYPE_CHECKING:
    from matplotlib.patches import Rectangle

FAST = Figure("Counting", "reports/s", 50e6, "a-peer", 4e6, goal=10)
SLOW = Figure("Estimating", "s", 2.0, "another-peer", 1.0, goal=10)
LARGE = absolute("Memory", "MiB", 400, 300)
FREE = Figure("Loading", "s", 1.0, "a-peer", 3.0)
ASIDE = Figure("Counting, beside a count of less", "reports/s", 50e6, "a-peer", 25e6)
PARTS = [
    ResultsPart("Speed", "What was done.", [FAST, SLOW], [Table("All", [{"a": 1}])], ["A note."]),
    ResultsPart("Rest", "More.", [LARGE, FREE]),
    ResultsPart("Growth", "How.", lines=[Line("values K", "count", [1, 10], [0.1, 1.0], [1.0, 1.0])]),
]


def test_higher_speed_and_lower_cost_are_better() -> None:
    assert (FAST.ratio, FAST.met) == (12.5, True)
    assert (SLOW.ratio, SLOW.met) == (0.5, False)
    assert (FREE.ratio, FREE.met) == (3.0, None)


@pytest.mark.parametrize(("ours", "met"), [(299, True), (300, True), (301, False)])
def test_absolute_goal_is_met_at_its_value(ours: float, met: bool) -> None:
    figure = absolute("Memory", "MiB", ours, 300)
    assert (figure.reference, figure.reference_value, figure.goal, figure.met) == ("goal", 300, 1.0, met)
    assert absolute("Speed", "reports/s", 2e6, 1e6).ratio == 2


def test_record_has_exactly_these_fields() -> None:
    assert FAST.record() == {
        "name": "Counting",
        "unit": "reports/s",
        "ours": 50e6,
        "reference": "a-peer",
        "reference_value": 4e6,
        "ratio": 12.5,
        "goal": 10,
        "met": True,
    }


def test_markdown_begins_with_goals_and_shortfalls() -> None:
    text = results.markdown(PARTS, {}, FULL)
    summary, _, rest = text.partition("\n## Speed\n")
    assert summary.index("![How many times better") < summary.index("## Summary")
    assert "1 of 3 goals met." in summary
    assert "| Speed | Counting | 12.5 | 10 | 50,000,000 | 4,000,000 | reports/s | a-peer |" in summary
    assert "| Rest | Memory | 0.75 | 1, **not met** | 400 | 300 | MiB | goal |" in summary
    assert "Loading" not in summary
    assert summary.endswith(
        "### What fell short\n\n"
        "- **Estimating**: 0.5 times better than another-peer, of 10 asked (2 and 1 s).\n"
        "- **Memory**: 400 MiB, of 300 asked.\n"
    )
    for text in ("What was done.", "### All", "- A note.", "| Loading | 3 |"):
        assert text in rest


def test_unjudged_goal_is_neither_met_nor_missed() -> None:
    """The fastest peer may be the missing one."""
    open_goal = replace(FAST, is_judged=False)
    assert (open_goal.goal, open_goal.met, open_goal.record()["met"]) == (10, None, None)
    parts = [ResultsPart("Speed", "What was done.", [open_goal, LARGE], unjudged=["Counting: no such peer"])]
    summary, _, _ = results.markdown(parts, {}, FULL).partition("\n## Speed\n")
    assert "0 of 1 goals that could be judged are met, others are not judged.\n" in summary
    assert "\n**Not judged**: Counting: no such peer" in summary
    assert "| Counting | 12.5 | 10, **not judged** |" in summary
    assert bars.verdict(open_goal) == "not judged: 10"
    assert "beside" not in summary


def test_summary_mentions_other_rivals_of_the_same_job() -> None:
    text = results.markdown([ResultsPart("Speed", "What was done.", [FAST, ASIDE, FREE])], {}, FULL)
    summary, _, _ = text.partition("\n## Speed\n")
    assert "times better: 2 (Counting, beside a count of less).\n" in summary


def test_no_shortfall_when_all_goals_are_met() -> None:
    text = results.markdown([ResultsPart("Speed", "What was done.", [FAST])], {}, FULL)
    assert "1 of 1 goals met." in text
    assert "fell short" not in text
    assert "## Summary" not in results.markdown([ResultsPart("Rest", "More.", [FREE])], {}, FULL)


def test_quick_cut_is_labelled() -> None:
    assert "By `make bench-quick` on " in results.markdown(PARTS, {}, QUICK)
    assert "**This is the quick cut**" in results.markdown(PARTS, {}, QUICK)
    assert "By `make bench` on " in results.markdown(PARTS, {}, FULL)
    assert "quick cut" not in results.markdown(PARTS, {}, FULL)


def test_peer_that_failed_to_install_is_named() -> None:
    text = results.markdown(PARTS, {"a-peer==1.2": "no wheel for this machine"}, FULL)
    assert "**a-peer==1.2 could not be installed**: no wheel for this machine" in text


@pytest.mark.slow
def test_run_writes_three_files_and_prints_unmet_goals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.md"
    results.write(PARTS, {}, FULL, file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json", "figures.md", "figures.png"]
    records = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert records == [figure.record() for figure in (FAST, SLOW, LARGE, FREE)]
    assert capsys.readouterr().out.splitlines() == [
        f"1 of 3 goals met; {file}",
        "not met: Estimating: 0.5 times better than another-peer, of 10 asked (2 and 1 s).",
        "not met: Memory: 400 MiB, of 300 asked.",
    ]


def bars_of(parts: Sequence[ResultsPart]) -> list["Rectangle"]:
    """The drawn bars, from the top."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.patches import Rectangle

    canvas = Canvas(figsize=(bars.WIDTH, bars.height(parts)))
    bars.draw(canvas, parts, top=0.0, room=bars.height(parts))
    (axes,) = canvas.axes
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


@pytest.mark.slow
def test_bar_spans_one_to_its_ratio() -> None:
    found = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars_of(PARTS)]
    assert found == [pytest.approx(sorted((1.0, each.ratio))) for each in (FAST, SLOW, LARGE, FREE)]


@pytest.mark.slow
def test_picture_has_bars_or_curves_or_both(tmp_path: Path) -> None:
    from matplotlib.image import imread

    from bench.comparison.report import picture

    widths = []
    for parts in (PARTS, PARTS[:2], PARTS[2:]):
        picture.draw(parts, "Title", "2 cores", tmp_path / "picture.png")
        pixels = imread(tmp_path / "picture.png")
        assert (pixels != 1).any()
        widths.append(pixels.shape[1])
    assert widths[0] == pytest.approx(widths[1] + widths[2], abs=2)


@pytest.mark.slow
def test_met_and_unmet_goals_differ_by_more_than_color() -> None:
    """Unmet goals are hatched and labelled."""
    assert [bar.get_hatch() for bar in bars_of(PARTS)] == [None, "/////", "/////", None]
    assert bars.verdict(absolute("Time", "s", 0.5, 1.0)) == "✓ 1"
    assert bars.verdict(absolute("Time", "s", 2.0, 1.0)) == "✗ 1"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123, "0.0123"),
        (8, "8"),
        (1000, "1,000"),
        (56_712, "56,712"),
        (567_123, "567 k"),
        (1e6, "1 M"),
        (2.5e9, "2.5 G"),
    ],
)
def test_figures_of_the_picture_are_short(value: float, shown: str) -> None:
    assert bars.short(value) == shown


def test_unwritable_results_stop_the_run_before_measuring(pin_messages: PinMessages, tmp_path: Path) -> None:
    results.check_writable(tmp_path / "results.md")
    (tmp_path / "results.json").unlink()
    (tmp_path / "results.json").mkdir()
    pin_messages({"a folder for results.json": lambda: results.check_writable(tmp_path / "results.md")})


@pytest.mark.parametrize(
    ("name", "above", "shown"),
    [
        ("k-RR, 100 values, beside numpy", "k-RR, 100 values", "… beside numpy"),
        ("Decoding: time beside Lasso", "Decoding: time", "… beside Lasso"),
        ("k-RR, 100 values", "", "k-RR, 100 values"),
        ("k-RR, 10,000 values", "k-RR, 100 values", "k-RR, 10,000 values"),
        ("Packs of 100", "Packs of 10", "Packs of 100"),
    ],
)
def test_row_omits_the_name_repeated_from_above(name: str, above: str, shown: str) -> None:
    assert bars.label(Figure(name, "s", 1.0, "peer", 2.0), above) == shown


def test_row_with_a_goal_has_its_full_name() -> None:
    assert bars.label(absolute("Decoding: time", "s", 1.0, 2.0), "Decoding") == "Decoding: time"
