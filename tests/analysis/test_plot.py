"""Plots: labelled axes, and a bar with its interval for each row."""

import itertools
import os
import re

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
pytest.importorskip("matplotlib", reason="the extra analysis is not installed")
os.environ.setdefault("MPLBACKEND", "agg")

import matplotlib as mpl
from matplotlib import pyplot

import deniable
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.errors import AnalysisError, WrongArgumentError
from deniable.analysis.functions.roll_ups import with_edges
from deniable.analysis.roll_up import rollup_table
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import T0, changed, estimate_of

mpl.use("agg")
FINAL = changed(estimate_of(), final=True)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def read(tmp_path, *records):
    file = tmp_path / "watched.jsonl"
    file.write_bytes(b"\n".join(map(encode_estimate, records)) + b"\n")
    return deniable.read_estimates(collection="fruit", files=file)


def of_a_number(edges=None):
    ages = Collection("ages", SquareWave.from_epsilon(0, 120, 240, 2), minimum_reports=1)
    ages = ages if edges is None else with_edges(ages, edges)
    counts = np.full((1, ages.width), 100)
    joined = Joined(WindowCounts(counts, counts.sum(axis=1), 1, 0), {T0: int(counts.sum())}, [], {}, 0)
    coverage = coverage_of(ages, Period(T0, T0 + ages.window_seconds), joined)
    return rollup_table(record_of(ages, coverage, joined, roll_up(ages, joined)), other=False)


def test_a_window_is_bars_with_their_intervals(tmp_path):
    table = read(tmp_path, FINAL)
    axes = table.plot()
    assert sorted(bar.get_width() for bar in axes.patches) == sorted(100 * f for f in FINAL.frequency)
    ends = axes.collections[0].get_segments()
    assert sorted(each[0][0] for each in ends) == pytest.approx(sorted(100 * low for low in FINAL.low))
    assert "95 % interval" in axes.get_xlabel()
    assert axes.get_title().startswith("fruit")


def values_of(number, start=T0, **fields):
    """A window of so many values, whose shares fall."""
    columns = {name: [1 / (place + 2) for place in range(number)] for name in ("frequency", "low", "high")}
    columns |= {"std_error": [0.01] * number, "count": [1.0] * number, "significant": [True] * number}
    columns |= {"values": [f"value {place}" for place in range(number)]} | fields
    return changed(FINAL, window_start=start, window_end=start + 10, **columns)


def labels_of(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_of_many_values_the_largest_are_drawn_apart_and_the_rest_is_said(tmp_path):
    table = read(tmp_path, values_of(60))
    axes = table.plot()
    axes.figure.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in axes.get_yticklabels()), key=lambda box: box.y0)
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))
    assert labels_of(axes) == [f"value {place}" for place in range(20)]
    assert axes.get_ylabel() == "value, the largest 20 of 60"
    assert len(table.plot(top=60).patches) == 60
    assert len(table.plot(log=True, top=3).patches) == 3


def test_legend_is_beside_the_data_and_says_the_rest(tmp_path):
    axes = read(tmp_path, *(values_of(60, T0 + 10 * window) for window in range(40))).plot()
    axes.figure.canvas.draw()
    legend = axes.get_legend()
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
    assert legend.get_window_extent().x1 <= axes.figure.bbox.x1
    assert legend.get_title().get_text() == "value, the largest 6 of 60"


def test_names_are_drawn_as_they_are(tmp_path):
    """None is a formula, hidden or joined with an equal one, and each is short and visible."""
    names = ["a$\\foo$b", "_hidden", "", "tab\t", "(other)", "(other)", "x" * 99]
    drawn = ["a$\\foo$b", "_hidden", '""', "tab\\t", "(other)", "(other)", f"{'x' * 31}…"]
    axes = read(tmp_path, values_of(7, values=names)).plot()
    axes.figure.canvas.draw()
    assert labels_of(axes) == drawn
    assert len(axes.patches) == 7
    apart = [names[:4] + [f"last {place}" for place in range(3)]] * 2
    axes = read(tmp_path, *(values_of(7, T0 + 10 * at, values=each) for at, each in enumerate(apart))).plot()
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.get_legend().get_texts()][:4] == drawn[:4]


def test_rows_of_a_number_are_named_by_both_edges(tmp_path):
    """Several windows have them in the legend."""
    rows = [values_of(4, T0 + at, values=["0", "1", "2.5", "10"], mechanism="number") for at in (0, 10)]
    axes = read(tmp_path, *rows).plot(top=3)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["[0, 1)", "[1, 2.5)", "[2.5, 10)"]


@pytest.mark.parametrize("top", [0, -1, 2.0, True])
def test_top_is_a_number_of_rows(tmp_path, top):
    with pytest.raises(WrongArgumentError, match="top must be an integer of at least 1"):
        read(tmp_path, FINAL).plot(top=top)


def test_several_windows_are_lines_over_time(tmp_path):
    later = changed(FINAL, window_start=T0 + 10, window_end=T0 + 20)
    axes = read(tmp_path, FINAL, later).plot(log=True)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == sorted(
        FINAL.values, key=lambda value: -FINAL.frequency[FINAL.values.index(value)]
    )
    assert axes.get_yscale() == "log"


def test_a_line_breaks_where_windows_are_missing(tmp_path):
    later = [changed(FINAL, window_start=T0 + at, window_end=T0 + at + 10) for at in (10, 40)]
    line, *_ = read(tmp_path, FINAL, *later).plot().lines
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False]


def test_many_windows_are_lines_with_a_band(tmp_path):
    """Their markers and bars would cover each other; a window that no line meets keeps its marker."""
    places = [*range(300), 310, 320]
    axes = read(tmp_path, *(values_of(2, T0 + 10 * at) for at in places)).plot()
    axes.figure.canvas.draw()
    assert len(axes.lines) == len(axes.collections) == 2
    first = axes.lines[0]
    marked = first.get_xdata()[first.get_markevery()]
    assert [int(each.timestamp()) for each in marked] == [T0 + 3100, T0 + 3200]
    assert not np.isnan(first.get_ydata()[first.get_markevery()]).any()
    assert len(axes.get_legend().get_texts()) == 2


def test_a_number_has_its_rows_on_its_axis_and_a_density_beside():
    table = of_a_number()
    axes = table.plot(log=True)
    assert [bar.get_x() for bar in axes.patches] == [float(value) for value in table["value"].to_pylist()]
    assert (axes.get_xlim()[1], axes.get_xscale()) == (120, "symlog")
    assert re.fullmatch("ages\n2026-01-01 00:00 to 2026-01-01 .* UTC", axes.get_title())
    density = table.density()
    assert density.column_names == ["lower", "upper", "share"]
    shares = density["share"].to_numpy().reshape(len(table), -1).sum(axis=1)
    np.testing.assert_allclose(shares, table["frequency"].to_numpy())


def test_chosen_rows_are_drawn_to_their_last_edge():
    """On a logarithmic axis, where the last row is not as wide as the one before it."""
    table = of_a_number((0, 1, 10, 100))
    assert table["upper"].to_pylist() == [1, 10, 100]
    axes = table.plot(log=True)
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0, 1), (1, 9), (10, 90)]
    assert axes.get_xlim()[1] == 100


def test_what_cannot_be_drawn_is_refused(tmp_path):
    table = read(tmp_path, FINAL)
    with pytest.raises(AnalysisError, match="roll-up of a number"):
        table.density()
    table.arrow = table.arrow.slice(0, 0)
    with pytest.raises(WrongArgumentError, match="no rows"):
        table.plot()
