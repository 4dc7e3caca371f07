"""What `replay` says where there is nothing to compare."""

import pytest

from aggregator.estimation.merged_counts import MergedCounts
from aggregator.maintenance.replay import Comparison, ReplayError
from deploy.services.aggregate.replay import _compare


@pytest.mark.parametrize(
    ("whole_from", "message"),
    [
        (0, "each window lacks deleted records (retention_seconds), or all its packs were rejected"),
        (
            1_767_225_600,
            "records were deleted; only windows that start at 2026-01-01T00:00:00+00:00 or later can be "
            "compared, and none of those is counted and still stored (retention_seconds)",
        ),
    ],
)
def test_why_nothing_is_compared_is_reported(whole_from: int, message: str) -> None:
    with pytest.raises(ReplayError) as caught:
        _compare(Comparison(0, 5, 0, whole_from, 0, MergedCounts(), 0))
    assert str(caught.value) == f"nothing to compare: {message}"
