"""What a table lacks or mixes is warned of, with a remedy, at the line that asked."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.conftest import warnings_of
from tests.support.messages import PinMessages

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.functions import read as tables
from deniable.analysis.sources.left_out import deleted_sentence
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.tables.file_formats import write_table
from deniable.analysis.tables.window_table import window_table
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


def test_roll_up_of_files_warns_of_another_definition(pin_messages: PinMessages, tmp_path: Path) -> None:
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
    with pytest.warns(UserWarning, match=f"{former.fingerprint:016x}") as found:
        table = deniable.rollup(**asked, start=T0, end=T0 + 20)
    assert [each.filename for each in found] == [__file__]
    assert table.about["reports"] == 100
    joined = deniable.rollup(**asked, start=T0, end=T0 + 20, former=[before])
    assert joined.about["reports"] == 200
    with pytest.warns(UserWarning, match=f"{former.fingerprint:016x}"):
        record = deniable.rollup(**asked, start=T0, end=T0 + 20, former=[config])
    assert record.about["reports"] == 100
    pin_messages({"another definition in a roll-up": lambda: str(found[0].message)})


def test_roll_up_across_changes_warns_of_a_part_that_no_true_values_explain(
    pin_messages: PinMessages, tmp_path: Path
) -> None:
    """All of 300 reports say the same, although 12 % are false: a chance of 4e-17."""
    files = {1: [180, 120], 2: [300, 0]}
    for epsilon, reports in files.items():
        config = tmp_path / f"{epsilon}.yaml"
        config.write_text(CONFIG % epsilon)
        counts = WindowCounts(np.array([reports]), np.array([300]), 1, 0)
        table = window_table(deniable.load(config).collection("fruit"), {T0 + 10 * epsilon: counts})
        write_table(table, tmp_path / f"{epsilon}.parquet", "parquet")
    with pytest.warns(UserWarning, match="contradict") as found:
        deniable.rollup(
            config, collection="fruit", files=[*tmp_path.glob("*.parquet")], start=T0 + 10, end=T0 + 30,
            former=[tmp_path / "1.yaml"],
        )  # fmt: skip
    pin_messages({"one of two parts": lambda: str(found[0].message)})


def test_windows_withdrawn_in_files_are_no_windows_of_a_roll_up(tmp_path: Path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2)
    collection = deniable.load(config).collection("fruit")
    counts = [WindowCounts(np.array([[each, 0]]), np.array([each]), 1, 0) for each in (0, 90)]
    table = window_table(collection, {T0: counts[0], T0 + 10: counts[1]})
    write_table(table, tmp_path / "x.parquet", "parquet")
    rolled = deniable.rollup(config, collection="fruit", files=tmp_path / "x.parquet", start=T0, end=T0 + 20)
    assert rolled.about["coverage"]["windows"] == 1


def test_roll_up_across_changes_warns_of_a_period_that_begins_too_early(
    pin_messages: PinMessages, tmp_path: Path
) -> None:
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
    with pytest.warns(UserWarning, match="fruit") as found:
        table = deniable.rollup(**asked, start=T0 - 20, end=T0 + 20)
    assert [each.filename for each in found] == [__file__]
    coverage = table.about["coverage"]
    assert (coverage["expected"], coverage["windows"], coverage["passed_over"]) == (4, 2, {})
    assert [*map(tuple, coverage["missing"])] == [(T0 - 20, T0)]
    pin_messages(
        {
            "a roll-up that begins before the files": lambda: str(found[0].message),
            "other with former": lambda: deniable.rollup(**asked, start=T0, end=T0 + 20, other=True),
        }
    )


def texts(**options: Any) -> str:
    """What reading the estimates of fruit warns of."""
    return warnings_of(lambda: deniable.read_estimates(collection="fruit", **options))


#: Periods that have windows beside those of the files, which are numbers 5 and 6.
PERIODS = {
    "a period that begins before the files": {"start": T0 + 40, "end": T0 + 90},
    "a period that begins in their last window": {"start": T0 + 65},
    "a period that begins at their end": {"start": T0 + 70},
    "a period that begins long after them": {"start": T0 + 700},
    "a period after the files": {"start": T0 + 80, "end": T0 + 90},
    "a period before the files": {"end": T0 + 50},
}


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_files_of_all_kinds_are_warned_of_alike(tmp_path: Path, name: str) -> None:
    """An empty table alone looks like a collection without reports."""
    file, lines = (written(tmp_path / each, at(5), at(6)) for each in (name, "lines.jsonl"))
    assert texts(files=file) == texts(files=file, start=T0 + 41, end=T0 + 90) == ""
    for period in PERIODS.values():
        assert texts(files=file, **period) == texts(files=lines, **period) != ""
    empty = written(tmp_path / f"empty-{name}")
    assert texts(files=empty) == texts(files=written(tmp_path / "empty.jsonl")) != ""
    assert texts(files=[empty, written(tmp_path / f"other-{name}", at(1))]) == ""


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
def test_windows_of_two_definitions_are_warned_of_with_both_fingerprints(tmp_path: Path, name: str) -> None:
    """Without a collection file, both are in the table; with one, the other definition's are left out."""
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2)
    present = f"{deniable.load(config).collection('fruit').fingerprint:016x}"
    file = written(tmp_path / name, at(0, fingerprint=FORMER), at(1, fingerprint=present))
    for mixed in (texts(files=file), texts(files=file, config=config)):
        assert FORMER in mixed
        assert present in mixed
    assert texts(files=file, start=T0 + 10) == ""


def test_messages(pin_messages: PinMessages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(CONFIG % 2 + TREE)
    present = f"{deniable.load(config).collection('fruit').fingerprint:016x}"
    file = written(tmp_path / "x.jsonl", at(5), at(6))
    mixed = written(tmp_path / "mixed.jsonl", at(0, fingerprint=FORMER), at(1, fingerprint=present))
    empty = written(tmp_path / "empty.jsonl")
    monkeypatch.setattr(tables, "read_topic", lambda *_: NewestEstimates())
    monkeypatch.setattr(tables, "warn_of_deleted", lambda *_: None)

    def from_topic(collection: str = "fruit", **options: Any) -> str:
        return warnings_of(lambda: deniable.read_estimates(config, collection=collection, **options))

    deleted = partial(deleted_sentence, "fruit", Period(T0, T0 + 99), T0 + 10, "deniable-estimates")
    pin_messages(
        {what: partial(texts, files=file, **period) for what, period in PERIODS.items()}
        | {
            "files without anything": partial(texts, files=empty),
            "two definitions": partial(texts, files=mixed),
            "another definition": partial(texts, files=mixed, config=config),
            "deleted records": deleted,
            "a topic without later estimates": partial(from_topic, start="2027-01-01T00:00:00Z"),
            "a topic without estimates of a period": partial(
                from_topic, start=T0, end=T0 + 20, provisional=True
            ),
            "a topic without estimates": from_topic,
            "a collection without candidates": partial(from_topic, "found"),
        }
    )
