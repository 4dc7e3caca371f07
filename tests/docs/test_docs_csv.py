"""The lines of docs/analysis.md that read CSV keep texts which look like missing values."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.aggregator.records.estimate import encode_estimate
from deniable.analysis.tables.file_formats import write_table
from tests.support.aggregator.builders import changed, estimate_of
from tests.support.paths import REPOSITORY

TEXTS = ["", "NA", "null"]
ANALYSIS = (REPOSITORY / "docs" / "analysis.md").read_text(encoding="utf-8")
(PANDAS,) = re.findall(r"```python\n(columns = pandas\.read_csv.*?)```", ANALYSIS, re.DOTALL)
(DUCKDB,) = re.findall(r"```sql\n(SELECT \* FROM read_csv.*?);\n```", ANALYSIS, re.DOTALL)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An exported day: texts, then the row `(other)`; `unbiased` and two flags are missing everywhere."""
    record = changed(estimate_of(), final=True, values=TEXTS, unbiased=[], low_all=[], high_all=[])
    lines = tmp_path / "watched.jsonl"
    lines.write_bytes(encode_estimate(record))
    table = deniable.read_estimates(collection="fruit", files=lines, other=True).arrow
    path = tmp_path / "estimates" / "collection=fruit" / "day=2026-01-01" / "x.csv"
    path.parent.mkdir(parents=True)
    write_table(table.drop_columns(["collection"]), path, "csv")
    return path


def test_pandas_keeps_texts_and_sees_missing_numbers(file: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = {"pandas": pandas, "file": file}
    exec(PANDAS, names)  # noqa: S102 - the page's own lines
    frame = names["frame"]
    assert frame["value"].tolist() == [*TEXTS, "(other)"]
    assert frame["std_error"].dtype == frame["unbiased"].dtype == "float64"
    assert frame["unbiased"].isna().all()
    assert frame["significant"].isna().tolist() == [False, False, False, True]


@pytest.mark.slow
def test_duckdb_and_polars_keep_texts_and_see_missing_numbers(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    monkeypatch.chdir(file.parents[3])
    found = duckdb.sql(DUCKDB).select("value", "std_error", "unbiased", "significant").fetchall()
    assert [row[0] for row in found] == [*TEXTS, "(other)"]
    assert all(isinstance(row[1], float) and row[2] is None for row in found)
    assert [row[3] is None for row in found] == [False, False, False, True]
    frame = polars.read_csv(file)
    assert frame["value"].to_list() == [*TEXTS, "(other)"]
    assert frame["unbiased"].null_count() == 4
