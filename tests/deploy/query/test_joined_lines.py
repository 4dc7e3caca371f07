"""The table of `rollup --former`: what people see of shares that noise took out of their range."""

import msgspec

from deniable.aggregator.history.rollup import WindowCoverage
from deniable.aggregator.records.estimate import NumberMean
from deniable.aggregator.records.history_part import HistoryPart
from deniable.analysis.changes.joined_history import JoinedHistoryRecord
from deniable.deploy.query.rollup import _lines


def record(parts: list[HistoryPart]) -> JoinedHistoryRecord:
    pair = [0.01, 0.01]
    return JoinedHistoryRecord(
        version=1,
        collection="carrier",
        fingerprint="0" * 16,
        start=0,
        end=60,
        reports=2000,
        parts=parts,
        coverage=WindowCoverage(0, 60, 1, 1, [], [], {}, 0),
        passed_over={},
        values=["common", "rare"],
        share=[1.012, -0.0042],
        std_error=[*pair],
        low=[0.98, 0.0],
        high=[1.0, 0.015],
        significant=[True, False],
        shared_std_error=[*pair],
        shared_low=[0.98, 0.0],
        shared_high=[1.0, 0.015],
        parts_of_value=[2, 2],
        p_value=[0.5, 0.5],
        differs=[False, False],
        mean=None,
    )


def test_shares_of_the_table_are_within_their_range() -> None:
    """The record keeps them as they are."""
    shown = {line.split()[0]: line.split()[2] for line in _lines(record([]))[-2:]}
    assert shown == {"common": "1.000000", "rare": "0.000000"}


def test_parts_whose_counts_no_true_values_explain_are_named_below() -> None:
    fits = (2e-9, 0.3, None)
    parts = [HistoryPart("0", 60 * i, 60 * i + 60, 1, 9, "k-rr", 1.0, "", "", fits[i]) for i in range(3)]
    for joined in (record(parts), msgspec.structs.replace(record(parts), mean=NumberMean(1, 1, 0, 2))):
        named = [line for line in _lines(joined) if "contradict the parameters" in line]
        assert named == [_lines(joined)[-1]]
        assert named[0].startswith("1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z: the counts contradict")
