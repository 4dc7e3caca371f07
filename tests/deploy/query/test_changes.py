"""What `changes` prints for people, without a broker."""

from pathlib import Path

import numpy as np
from click.testing import CliRunner
from msgspec import structs

from deniable.aggregator.history.rollup import WindowCoverage
from deniable.aggregator.history.share_sequences import ShareSequence
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.share_history import ChangesAnswer, fit_of
from deniable.deploy.query.detectors.change_lines import change_lines, mean_lines, share_lines
from deniable.deploy.query.detectors.changes import changes, lines_of
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT
from tests.support.messages import refusal_of


def test_a_share_that_noise_took_out_of_its_interval_is_shown_at_its_end() -> None:
    """The unconstrained share may be negative; programs get it as it is."""
    ends = [0.0, 0.99], [0.0118, 1.0]
    sequence = ShareSequence(0, 60, 1, 1000, False, ["rare", "common"], [-0.0037, 1.02], *ends, *ends)
    rows = {line.split()[0]: line.split()[1:4] for line in share_lines(sequence)[-2:]}
    assert rows == {
        "common": ["1.000000", "0.990000", "1.000000"],
        "rare": ["0.000000", "0.000000", "0.011800"],
    }


def test_mean_of_a_number_is_a_line_in_its_units() -> None:
    """Noise may take the mean out of its interval, which ends at those of the range."""
    ends = [60.0], [63.25]
    sequence = ShareSequence(0, 60, 2, 1000, False, ["mean"], [58.5], *ends, *ends)
    assert mean_lines(sequence) == [
        "1000 reports of 2 windows; 95 % intervals at every look",
        "mean: 60, from 60 to 63.25",
    ]
    assert mean_lines(None) == ["no window has minimum_reports: there are no intervals"]


def test_figures_of_a_change_are_in_range_and_the_newest_is_beside_them() -> None:
    """The share that changed may have come back; differences are as they are."""
    gone = ShareChange("kiwi", 60, 120, 0.004, -0.0021, -0.0061, -0.009, -0.003)
    line = (
        "  kiwi: 0.0040 to 0.0000 since 1970-01-01T00:01:00Z, by -0.0061 (-0.0090 to -0.0030), "
        "found 1970-01-01T00:02:00Z"
    )
    head = "1 change (at most 0.1 false alarms a year):"
    assert change_lines(FRUIT, [gone], 0.1, {}) == [head, line]
    for now, shown in ((0.0041, "0.0041"), (-0.001, "0.0000")):
        assert change_lines(FRUIT, [gone], 0.1, {"kiwi": now})[1] == f"{line}; in the newest window {shown}"
    part = change_lines(FRUIT, [structs.replace(gone, partial=True)], 0.1, {"kiwi": 0.0041})[1]
    assert (
        part
        == f"{line}, maybe a part of it: the next final window states it anew; in the newest window 0.0041"
    )
    assert change_lines(FRUIT, [], 0.1, {}) == ["no share changed (at most 0.1 false alarms a year)"]


def test_counts_of_the_period_that_contradict_the_parameters_are_named_first() -> None:
    """Of 8,000 reports the last value has none, where lies alone are hundreds."""
    honest, forged = np.array([[5000, 3000, 2000, 1500]]), np.array([[8000, 500, 500, 0]])
    coverage = WindowCoverage(0, 20, 2, 2, [], [], {}, 0)
    said = []
    for counts in (honest, forged):
        windows = [WindowCounts(counts // 2, counts.sum(axis=1) // 2, 1, 0)] * 2
        fit = fit_of(windows, FRUIT)
        answer = ChangesAnswer(1, "fruit", "0", 0.1, coverage, [], None, fit)
        said.append(lines_of(FRUIT, answer, {}))
    assert [line for line in said[0] if "contradict" in line] == []
    assert said[1][0].startswith("the counts contradict the parameters (p ")
    assert said[1][1:] == said[0]
    assert fit_of([], FRUIT) == 1


def test_a_change_beyond_its_interval_is_shown_at_its_end() -> None:
    all_now = ShareChange("kiwi", 60, 120, -0.02, 1.01, 1.03, 0.98, 1.0)
    assert ", by +1.0000 (+0.9800 to +1.0000), " in change_lines(FRUIT, [all_now], 0.1, {})[1]


def test_a_mean_that_changed_is_within_the_range_of_its_number() -> None:
    minutes = Collection("minutes", SquareWave.from_epsilon(60.0, 660.0, 40, 2.0))
    change = ShareChange("mean", 60, 120, 64.0, 58.25, -5.75, -7.0, -4.5)
    line = change_lines(minutes, [change], 5, {"mean": 664.0})[1]
    assert line.startswith("  mean: 64 to 60 since ")
    assert line.endswith("; in the newest window 660")


def test_without_candidates_the_command_names_another(tmp_path: Path) -> None:
    file = tmp_path / "deniable.yml"
    file.write_text(
        "collections:\n"
        "  - {name: search, mechanism: prefix-tree, epsilon: 4, lengths: [2, 3], budget: none,\n"
        "     window_seconds: 60, grace_seconds: 60, retention_seconds: 86400}\n"
    )
    ended = CliRunner().invoke(changes, ["search", "--config", str(file)])
    assert refusal_of(ended, 2).startswith("Error: search ")
