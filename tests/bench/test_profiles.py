"""Every stage of a hot path is timed, every growing size has a job, and sentences match the figures."""

import pytest

from bench.comparison.parts import growth, hot_path
from bench.comparison.parts.hot_path import Profile
from bench.comparison.report.figure import Line
from bench.comparison.runners.ours import growth_runner, hot_path_runner
from bench.comparison.timing.stopwatch import Stage, Stopwatch

pytestmark = pytest.mark.slow


class Work:
    """Two stages, one of which calls the other."""

    def outer(self) -> int:
        """Call the inner one."""
        return self.inner() + 1

    def inner(self) -> int:
        """Return a number."""
        return 1


def test_stage_time_excludes_nested_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by 1 at each reading: all time is charged to exactly one stage."""
    clock = iter(range(100))
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(clock))
    watch, inner = Stopwatch(), Work.inner
    with watch.watching([Stage("outer", Work, "outer"), Stage("inner", Work, "inner")]), watch.stage("rest"):
        assert Work().outer() == 2
    assert dict(watch.nanoseconds) == {"rest": 2, "outer": 2, "inner": 1}
    assert Work.inner is inner


def test_failing_stage_is_closed() -> None:
    watch = Stopwatch()
    with pytest.raises(ZeroDivisionError), watch.stage("rest"), watch.stage("division"):
        _ = 1 // 0
    with watch.stage("after"):
        pass
    assert set(watch.nanoseconds) == {"rest", "division", "after"}


@pytest.mark.parametrize("paths", [hot_path.PRODUCER, hot_path.WORKER], ids=["producer", "worker"])
def test_every_stage_of_a_path_is_timed(paths: tuple[hot_path.Path, ...]) -> None:
    """A renamed or unused function fails here instead of disappearing from the results."""
    stages = hot_path_runner.PRODUCER if paths is hot_path.PRODUCER else hot_path_runner.WORKER
    timed: set[str] = set()
    for path in paths:
        found = hot_path_runner.JOBS[path.job](20_000, **path.parameters)()
        assert isinstance(found, dict)
        assert found["unwatched"] > 0
        assert min(found["stages"].values()) > 0
        timed |= set(found["stages"])
    assert timed == {stage.name for stage in stages} | {hot_path_runner.REST}


def test_sentences_come_from_the_figures() -> None:
    profile = Profile("worker", {"checksums": 2.0, "counting": 6.0, "reading": 1.5, "the rest": 0.5}, 8.0)
    assert hot_path.sentence(profile) == (
        "**worker**: of 10 ns a report, 6 (60%) go to counting and 2 (20%) to checksums."
    )
    alone = Profile("worker", {"counting": 9.0, "checksums": 1.0}, 10.0)
    assert hot_path.sentence(alone) == "**worker**: of 10 ns a report, 9 (90%) go to counting."
    assert hot_path.overhead([alone, profile]) == (
        "With the stopwatch a path takes at most 25% longer than without it (worker)."
    )
    assert [row["share"] for row in hot_path.rows(alone)] == ["90.0%", "10.0%", "100.0%"]


@pytest.mark.parametrize("each", growth.GROWTHS, ids=lambda each: each.job)
@pytest.mark.nightly
def test_every_size_that_grows_has_a_job(each: growth.Growth) -> None:
    growth_runner.JOBS[each.job](2, size=8)()
    traced = growth_runner.JOBS[each.job](1, size=8, traced=True)()
    assert isinstance(traced, int)
    assert traced > 0


def test_faster_growth_than_expected_is_noted() -> None:
    sizes = [1, 10, 100]
    flat = [Line(each.axis, each.what, sizes, [1.0] * 3, [1.0] * 3) for each in growth.GROWTHS]
    assert growth.steeper(flat) == [
        "Nothing grows faster than expected: no exponent is more than 0.15 above it."
    ]
    squares = Line("values K", "randomize 100,000", sizes, [1.0, 100.0, 10_000.0], [1.0] * 3)
    assert growth.steeper([squares, *flat[1:]]) == [
        "values K, randomize 100,000: time grows by the power 2.00 (2.00, 2.00), not by 0 or less."
    ]
