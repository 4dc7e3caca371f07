"""Failures of peers appear in the results and do not stop the benchmark."""

from collections.abc import Iterator

import pytest

from bench.comparison.rivals import beside_peers, section_of, with_goal
from bench.comparison.timing import contestant
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import Job
from tests.support.messages import PinMessages

pytestmark = pytest.mark.slow

ASKED = {"k": 10, "epsilon": 1.0}


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.comparison.timing.rounds.ROUND_SECONDS", 0.02)
    monkeypatch.setattr("bench.comparison.timing.rounds.ROUNDS", 3)


@pytest.fixture(name="ours")
def _ours() -> Iterator[Contestant]:
    with Contestant("ours.deniable_runner") as ours:
        yield ours


def test_missing_library_has_a_row_with_the_reason(ours: Contestant) -> None:
    """The goal is not judged then: the missing one might be the fastest."""
    with Contestant("absent_runner") as absent:
        job = Job(absent, "count k-RR", ASKED)
        found = beside_peers("k-RR", Job(ours, "count k-RR", ASKED), [job], 10.0)
        mine, theirs = found.rows
        assert float(mine["reports/s"]) > 0
        assert (theirs["library"], theirs["reports/s"], theirs["ours is, times"]) == ("absent", "", "")
        assert "absent_runner" in str(theirs["does otherwise"])
        assert (mine["goal"], found.missed) == ("10, not judged", [])
        with pytest.raises(ContestantError, match="absent_runner"):
            beside_peers("k-RR", job, [])


def test_goal_is_of_the_fastest_peer_and_of_none_aside(ours: Contestant) -> None:
    job = Job(ours, "count k-RR", ASKED)
    found = beside_peers("k-RR", job, [job], 0.1, aside=[Job(ours, "k-RR", ASKED, "randomizes")])
    assert (len(found.rows), found.missed) == (3, [])
    assert found.rows[0]["goal"] == "0.1"
    assert float(found.rows[-1]["reports/s"]) < float(found.rows[0]["reports/s"])
    (why,) = beside_peers("k-RR", job, [job], 1e6).missed
    assert why.endswith("times the fastest peer's rate, of 1e+06 asked")
    assert section_of("What was done.", [found, found]).rows == found.rows * 2


def test_goal_of_ours_alone_is_a_rate(ours: Contestant) -> None:
    job = Job(ours, "count k-RR", ASKED)
    assert with_goal("k-RR", job, 1.0).missed == []
    (why,) = with_goal("k-RR", job, 1e15).missed
    assert why.startswith("k-RR: ")


def test_library_survives_a_failed_job(ours: Contestant) -> None:
    with pytest.raises(ContestantError, match=r"^ours.deniable_runner: "):
        ours.prepare("k-RR", 1, k=1, epsilon=1.0)
    ours.prepare("k-RR", 10, k=2, epsilon=1.0)
    assert ours.run().seconds > 0


def test_hanging_library_is_killed(
    ours: Contestant, pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.prepare("k-RR", 30_000_000, k=100, epsilon=1.0)
    monkeypatch.setattr(contestant, "ANSWER_SECONDS", 0.3)
    pin_messages({"a library that hangs": ours.run})
