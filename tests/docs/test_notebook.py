"""The notebook of docs runs, and its figures are those of the estimators and of the files."""

import ast
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench.flights_files import flights_by_day, write
from deniable.aggregator.history.periods import Period
from deniable.analysis.sources.files import files_of, read_files
from deniable.analysis.tables.window_table import window_schema, windows_of
from deniable.estimators.frequency import krr
from deniable.estimators.mechanisms.krr import KRR
from tests.support.paths import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NOTEBOOK = REPOSITORY / "docs" / "analysis.ipynb"
WEEK = range(1_357_516_800, 1_358_121_600, 86_400)  # from 2013-01-07
FIGURES = """
import json
print(json.dumps({
    "values": table["value"].tolist(), "frequency": table["frequency"].tolist(),
    "low": table["low"].tolist(), "days": int(year["window_start"].nunique()),
    "reports": int(days.sum()), "significant": int(found["significant"].sum()),
}))
"""


@pytest.fixture(scope="module", autouse=True)
def notebooks() -> None:
    """Skip without what runs notebooks; imported here, since it takes a fifth of a second."""
    pytest.importorskip("nbformat", reason="nbformat and nbclient run notebooks")
    pytest.importorskip("nbclient", reason="nbformat and nbclient run notebooks")
    pytest.importorskip("ipykernel", reason="a notebook needs a kernel")
    pytest.importorskip("pyarrow", reason="the extra analysis is not installed")


def test_notebook_imports_the_public_face_alone() -> None:
    """Nothing deeper of the project, as applications should."""
    import nbformat

    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    found = [each for each in ast.walk(ast.parse(code)) if isinstance(each, (ast.Import, ast.ImportFrom))]
    names = {alias.name for each in found if isinstance(each, ast.Import) for alias in each.names}
    names |= {str(each.module) for each in found if isinstance(each, ast.ImportFrom)}
    ours = {each.parent.name for each in REPOSITORY.glob("*/__init__.py")}
    assert {name for name in names if name.partition(".")[0] in ours} == {"deniable"}


@pytest.mark.all
@pytest.mark.parametrize(
    "months", [(1, 6, 7), pytest.param(range(1, 13), marks=pytest.mark.nightly)], ids=len
)
def test_notebook_shows_what_it_computes(tmp_path: Path, months: Sequence[int]) -> None:
    """What is stored is what a run of the year shows, to the last digit; its figures are the estimators'."""
    import nbformat

    from bench.notebook import executed, texts

    days = {start: rows for start, rows in flights_by_day().items() if time.gmtime(start).tm_mon in months}
    collection = write(tmp_path, days)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = texts(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(FIGURES))
    shown = texts(executed(notebook, tmp_path))
    assert len(shown) == len(stored) + 1
    if len(months) == 12:
        assert shown[:-1] == stored
    assert ["picture"] in stored
    figures = json.loads(shown[-1][0])
    found, _, _ = read_files(
        files_of(tmp_path / "windows", "carrier"), window_schema(), "carrier", None, Period(0, 1 << 40)
    )
    windows = windows_of(collection, found)
    counts = np.sum([windows[start].counts[0] for start in WEEK], axis=0)
    assert isinstance(collection.mechanism, KRR)
    expected = krr.estimate(counts, collection.mechanism)
    by_value = dict(zip(collection.values, zip(expected.frequency, expected.low, strict=True), strict=True))
    rows = zip(figures["values"], figures["frequency"], figures["low"], strict=True)
    assert {value: (share, low) for value, share, low in rows} == by_value
    assert (figures["days"], figures["reports"]) == (len(days), sum(map(len, days.values())))
    assert figures["significant"] > 0
