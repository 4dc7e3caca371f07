"""The table of `rollup --former`: what people see of shares that noise took out of their range."""

from deniable.aggregator.history.rollup import WindowCoverage
from deniable.analysis.changes.history_record import JoinedHistoryRecord
from deniable.deploy.query.rollup import _lines


def test_shares_of_the_table_are_within_their_range() -> None:
    """The record keeps them as they are."""
    pair = [0.01, 0.01]
    record = JoinedHistoryRecord(
        version=1,
        collection="carrier",
        fingerprint="0" * 16,
        start=0,
        end=60,
        reports=2000,
        parts=[],
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
    shown = {line.split()[0]: line.split()[2] for line in _lines(record)[-2:]}
    assert shown == {"common": "1.000000", "rare": "0.000000"}
