"""What a table lacks or mixes is warned of, with a remedy, at the line that asked."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from aggregator.history.periods import Period
from aggregator.records.estimate import EstimateRecord, encode_estimate
from aggregator.records.window_counts import WindowCounts
from analysis.errors import AnalysisError
from analysis.sources.left_out import deleted_sentence
from analysis.sources.newest import NewestEstimates
from analysis.tables.file_formats import write_table
from analysis.tables.window_table import window_table
from deploy.query import tables
from tests.support.aggregator.builders import T0, changed, estimate_of

FINAL = changed(estimate_of(), final=True)
FORMER = "0" * 15 + "1"
CONFIG = """\
revision: 1
collections:
  - {name: fruit, mechanism: k-rr, values: [apple, fig], other: false, epsilon: %s, window_seconds: 10,
     grace_seconds: 1, minimum_reports: 1, budget: none}
"""
TREE = """\
  - {name: found, mechanism: prefix-tree, lengths: [1, 2], epsilon: 2, window_seconds: 10, grace_seconds: 1,
     minimum_reports: 1, budget: none}
"""


def at(number: int, **fields: Any) -> EstimateRecord:
    return changed(FINAL, window_start=T0 + 10 * number, window_end=T0 + 10 * number + 10, **fields)


def written(path: Path, *records: EstimateRecord) -> Path:
    """A file of each kind that `read_estimates` takes."""
    if path.suffix == ".jsonl":
        path.write_bytes(b"\n".join(map(encode_estimate, records)))
        return path
    newest = NewestEstimates()
    for each in records:
        newest.add(encode_estimate(each))
    write_table(newest.table(other=True), path, path.suffix[1:])
    return path


def texts(**options: Any) -> list[str]:
    """What reading the estimates of fruit warns of; each at a line of this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        deniable.read_estimates(collection="fruit", **options)
    assert {each.filename for each in found} <= {__file__}
    return [str(each.message) for each in found]


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_period_that_begins_before_the_files_is_warned_of(tmp_path: Path, name: str) -> None:
    file = written(tmp_path / name, at(5), at(6))
    there = "fruit: the files hold windows from 2026-01-01T00:00:50Z to 2026-01-01T00:01:10Z"
    remedy = "export earlier windows, as long as their topic keeps them"
    assert texts(files=file) == []
    assert texts(files=file, start=T0 + 41, end=T0 + 90) == []
    assert texts(files=file, start=T0 + 40, end=T0 + 90) == [
        f"{there}, and none from 2026-01-01T00:00:40Z on until then: {remedy}"
    ]
    after = "give an earlier period, or export later windows once they are final"
    for start in (T0 + 65, T0 + 70, T0 + 700):
        (said,) = texts(files=file, start=start)
        assert said.startswith(f"{there}, and none from ")
        assert said.endswith(f" on: {after}")
    assert texts(files=file, start=T0 + 80, end=T0 + 90) == [
        f"{there}, and none in 2026-01-01T00:01:20Z to 2026-01-01T00:01:30Z: {after}"
    ]
    assert texts(files=file, end=T0 + 50) == [
        f"{there}, and none in 1970-01-01T00:00:00Z to 2026-01-01T00:00:50Z: give a later period, or {remedy}"
    ]


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_files_without_anything_are_warned_of(tmp_path: Path, name: str) -> None:
    """An empty table alone looks like a collection without reports."""
    expected = ["fruit: the files hold nothing of any collection"]
    assert texts(files=written(tmp_path / name)) == expected
    assert texts(files=[tmp_path / name, written(tmp_path / f"other-{name}", at(1))]) == []


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_windows_of_two_definitions_are_warned_of_with_both_fingerprints(tmp_path: Path, name: str) -> None:
    """Without a collection file, both are in the table; with one, the other definition's are left out."""
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2)
    present = f"{deniable.load(config).collection('fruit').fingerprint:016x}"
    file = written(tmp_path / name, at(0, fingerprint=FORMER), at(1, fingerprint=present))
    (mixed,) = texts(files=file)
    assert mixed.startswith(
        "fruit: windows of 2 definitions are in the table, by fingerprint: "
        f"{FORMER} (1 window), {present} (1 window); their shares and errors may not be comparable: give"
    )
    assert texts(files=file, config=config) == [
        f"fruit: 1 window with other parameters (fingerprint {FORMER}) skipped; those of the collection "
        f"file have fingerprint {present}: give the collection file that they were counted under to read them"
    ]
    assert texts(files=file, start=T0 + 10) == []


def test_roll_up_of_files_warns_of_another_definition(tmp_path: Path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2)
    present = deniable.load(config).collection("fruit")
    before = tmp_path / "before.yaml"
    before.write_text(CONFIG % 1)
    former = deniable.load(before).collection("fruit")
    counts = WindowCounts(np.array([[60, 40]]), np.array([100]), 1, 0)
    for number, each in enumerate((former, present)):
        table = window_table(each, {T0 + 10 * number: counts})
        write_table(table, tmp_path / f"{number}.parquet", "parquet")
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    asked: dict[str, Any] = {"config": config, "collection": "fruit", "files": files}
    said = (
        rf"^fruit: 1 window with other parameters \(fingerprint {former.fingerprint:016x}\) skipped; those "
    )
    with pytest.warns(UserWarning, match=said) as found:
        table = deniable.rollup(**asked, start=T0, end=T0 + 20)
    assert [each.filename for each in found] == [__file__]
    assert str(found[0].message).endswith("rollup with former=[FILE] joins their estimates")
    assert table.about["reports"] == 100
    joined = deniable.rollup(**asked, start=T0, end=T0 + 20, former=[before])
    assert joined.about["reports"] == 200
    with pytest.warns(UserWarning, match="1 window with other parameters"):
        record = deniable.rollup(**asked, start=T0, end=T0 + 20, former=[config])
    assert record.about["reports"] == 100


def test_windows_withdrawn_in_files_are_no_windows_of_a_roll_up(tmp_path: Path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2)
    collection = deniable.load(config).collection("fruit")
    counts = [WindowCounts(np.array([[each, 0]]), np.array([each]), 1, 0) for each in (0, 90)]
    table = window_table(collection, {T0: counts[0], T0 + 10: counts[1]})
    write_table(table, tmp_path / "x.parquet", "parquet")
    rolled = deniable.rollup(config, collection="fruit", files=tmp_path / "x.parquet", start=T0, end=T0 + 20)
    assert rolled.about["coverage"]["windows"] == 1


def test_topic_that_has_deleted_records_is_named_with_remedies() -> None:
    said = deleted_sentence("fruit", Period(T0, T0 + 99), T0 + 10, "deniable-estimates")
    assert said.startswith(
        "fruit: deniable-estimates keeps records since 2026-01-01T00:00:10Z, and the period"
    )
    assert said.endswith("deniable export --follow run and read its files, or raise the topic's retention.ms")


def test_roll_up_across_changes_warns_of_a_period_that_begins_too_early(tmp_path: Path) -> None:
    """Once, of all definitions: that the present one begins later is the change itself."""
    config, before = tmp_path / "deniable.yaml", tmp_path / "before.yaml"
    config.write_text(CONFIG % 2)
    before.write_text(CONFIG % 1)
    counts = WindowCounts(np.array([[60, 40]]), np.array([100]), 1, 0)
    for number, each in enumerate((before, config)):
        table = window_table(deniable.load(each).collection("fruit"), {T0 + 10 * number: counts})
        write_table(table, tmp_path / f"{number}.parquet", "parquet")
    asked: dict[str, Any] = {"config": config, "collection": "fruit", "former": [before]}
    asked["files"] = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    with pytest.warns(UserWarning, match="^fruit: the files hold windows from .*, and none from") as found:
        table = deniable.rollup(**asked, start=T0 - 20, end=T0 + 20)
    assert [each.filename for each in found] == [__file__]
    coverage = table.about["coverage"]
    assert (coverage["expected"], coverage["windows"], coverage["passed_over"]) == (4, 2, {})
    assert [*map(tuple, coverage["missing"])] == [(T0 - 20, T0)]
    with pytest.raises(AnalysisError, match=r"^give either other or former"):
        deniable.rollup(**asked, start=T0, end=T0 + 20, other=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"start": "2027-01-01T00:00:00Z"},
            "holds no final estimates from 2027-01-01T00:00:00Z on: give another",
        ),
        ({"start": T0, "end": T0 + 20, "provisional": True}, "holds no estimates in 2026-01-01T00:00:00Z to"),
        ({}, "holds no final estimates: give another period"),
        ({"collection": "found"}, "^found: it has no candidates, so no estimates of values: read its counts"),
    ],
)
def test_topic_without_estimates_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], expected: str
) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 1 + TREE)
    monkeypatch.setattr(tables, "read_topic", lambda *_: NewestEstimates())
    monkeypatch.setattr(tables, "warn_of_deleted", lambda *_: None)
    with pytest.warns(UserWarning, match=expected):
        found = deniable.read_estimates(config, **{"collection": "fruit", **options})
    assert len(found) == 0
