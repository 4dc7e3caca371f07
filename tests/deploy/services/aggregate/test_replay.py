"""What `replay` says where there is nothing to compare."""

import pytest
from click.testing import CliRunner

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.maintenance.replay import Comparison
from deniable.cluster.connection.start_log import SAY_SECONDS
from deniable.deploy.services.aggregate.replay import _compare, _Progress, replay
from tests.support.messages import PinMessages


def test_messages(pin_messages: PinMessages) -> None:
    def compare(whole_from: int, records: int = 5) -> None:
        _compare(Comparison(0, records, 0, whole_from, 0, MergedCounts(), 0))

    pin_messages(
        {
            "no window is whole": lambda: compare(0),
            "no counted window is whole": lambda: compare(1_767_225_600),
            "no record is left": lambda: compare(1_767_225_600, 0),
        }
    )


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon"])
def test_wait_that_is_no_length_of_time_is_wrong_usage(seconds: str) -> None:
    """`nan` is neither below 0 nor above it, and would end the wait at once."""
    ended = CliRunner().invoke(replay, ["--wait", seconds, "--config", "absent.yaml"])
    assert ended.exit_code == 2
    assert "'--wait'" in ended.stderr


def test_first_step_is_printed_at_once_and_then_the_present_one_in_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wait without a worker lasts a minute, and is not silent."""
    progress, now = _Progress(), 1000.0
    for step in range(5):
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        progress(f"step {step}")
        now += SAY_SECONDS / 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "step 0 …\nstep 2 …\nstep 4 …\n")
