"""Plots: labelled axes, and a bar with its interval for each row."""

import os

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
from deniable.analysis.rollup_table import rollup_table
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


def test_a_number_has_its_rows_on_its_axis_and_a_density_beside():
    table = of_a_number()
    axes = table.plot(log=True)
    assert [bar.get_x() for bar in axes.patches] == [float(value) for value in table["value"].to_pylist()]
    assert (axes.get_xlim()[1], axes.get_xscale()) == (120, "symlog")
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
