"""What `replay` says where there is nothing to compare."""

import pytest
from click.testing import CliRunner

from aggregator.estimation.merged_counts import MergedCounts
from aggregator.maintenance.replay import Comparison, ReplayError
from deploy.services.aggregate.replay import _compare, replay


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


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon"])
def test_wait_that_is_no_length_of_time_is_wrong_usage(seconds: str) -> None:
    """`nan` is neither below 0 nor above it, and would end the wait at once."""
    ended = CliRunner().invoke(replay, ["--wait", seconds, "--config", "absent.yaml"])
    assert ended.exit_code == 2
    assert "Invalid value for '--wait'" in ended.stderr
