"""A peer that cannot be loaded is told in the results, and ends nothing."""

from types import SimpleNamespace

import pytest

from bench.contest.attempt import attempt
from bench.contest.contestant import Contestant, ContestantError
from bench.contest.parts.contests import contest
from bench.contest.rounds import QUICK, Job


def test_a_library_that_is_not_there_is_a_row_that_says_so():
    asked = {"k": 10, "epsilon": 1.0}
    with Contestant("deniable_runner") as ours, Contestant("absent_runner") as absent:
        jobs = Job(ours, "count k-RR", asked), [Job(absent, "count k-RR", asked)]
        figures, (mine, theirs) = contest("k-RR", *jobs, QUICK, 10.0)
        assert figures == []
        assert mine["reports/s"] > 0
        assert theirs["library"] == "absent"
        assert theirs["reports/s"] == 0
        assert "No module named 'bench.contest.runners.absent_runner'" in theirs["does otherwise"]
        with pytest.raises(ContestantError, match="absent_runner"):
            contest("k-RR", jobs[1][0], [], QUICK, 10.0)


def test_a_job_that_a_library_fails_at_does_not_end_it():
    with Contestant("deniable_runner") as ours:
        with pytest.raises(ContestantError, match=r"^deniable_runner: ValueError: "):
            ours.prepare("k-RR", 1, k=1, epsilon=1.0)
        ours.prepare("k-RR", 10, k=2, epsilon=1.0)
        assert ours.run().seconds > 0


def test_a_part_that_fails_says_why():
    def measure(_):
        raise ContestantError("some_runner: it fell over")

    part = attempt(SimpleNamespace(measure=measure, __name__="bench.contest.parts.some"), QUICK)
    assert part.notes == ["**some was not measured**: some_runner: it fell over"]
