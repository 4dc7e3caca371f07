"""The results of `make chaos` are stored after each run, so a call resumes where the last one ended."""

from dataclasses import asdict, replace
from pathlib import Path

from tests.chaos.judging.path_verdict import PathVerdict
from tests.chaos.judging.verdict import Verdict
from tests.chaos.report import Report, table
from tests.chaos.scenes.order import Order

EXACT = Verdict(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 120_000, 110_000, 10_000, 3, 4.2, 9.5, 2000.0, 0.5)


def test_exact_runs_are_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "results" / "chaos.json"
    done, off, broken, slow = (Order("zombie", seed) for seed in (1, 2, 3, 4))
    report = Report(file)
    report.add(done, EXACT)
    report.add(off, replace(EXACT, difference=7))
    report.add(broken, None, "no broker")
    report.add(replace(slow, rate=100), EXACT)
    again = Report(file)
    assert [again.has(order) for order in (done, off, broken, slow)] == [True, False, False, False]


def test_table_adds_up_the_runs_of_a_fault(tmp_path: Path) -> None:
    report = Report(tmp_path / "chaos.json")
    report.add(Order("zombie", 1), EXACT)
    report.add(Order("zombie", 2), replace(EXACT, difference=7, missing=2, longest_gap=12.5))
    report.add(
        Order("zombie", 2), replace(EXACT, difference=5, published=1, longest_gap=11.25, latest_final=8.5)
    )
    report.add(Order("kill-9", 1), None, "no broker")
    lines = (tmp_path / "chaos.md").read_text().splitlines()
    assert lines == table(report.rows).splitlines()
    assert lines[0] == (
        "| fault | runs | exact | difference | records | missing | doubled | finals | longest gap"
        " | of a partition | latest final |"
    )
    assert lines[2] == "| zombie | 2 | 1 | 6 | 240,000 | 0 | 0 | 6 | 11.2 s | 9.5 s | 8.5 s |"
    assert lines[3] == "| kill-9 | 1 | 0 | 0, 1 not judged | 0 | 0 | 0 | 0 | 0.0 s | 0.0 s | 0.0 s |"


def test_faults_on_the_path_of_devices_have_another_table(tmp_path: Path) -> None:
    report = Report(tmp_path / "chaos.json")
    exact = PathVerdict(**asdict(EXACT), requests=4000, uploads=3000, told=2500, counted=2490, refused=10)
    report.add(Order("zombie", 1), EXACT)
    report.add(Order("bodies", 1), exact)
    report.add(Order("bodies", 2), replace(exact, lost=2, bits_off=3, published=4, latest_pack=8.5))
    lines = (tmp_path / "chaos.md").read_text().splitlines()
    assert lines[3:5] == [
        "",
        "| fault | runs | exact | requests | uploads | told 204 | counted once | rejected | lost | twice"
        " | difference | of workers | latest pack |",
    ]
    assert lines[6] == "| bodies | 2 | 1 | 8,000 | 6,000 | 5,000 | 4,980 | 20 | 2 | 0 | 5 | 4 | 8.5 s |"


def test_faults_of_a_cluster_have_another_table(tmp_path: Path) -> None:
    report = Report(tmp_path / "chaos.json")
    report.add(Order("slow-replica", 1), replace(EXACT, finals_changed=1, finals_off=7, ready_seconds=3.25))
    report.add(Order("slow-replica", 2), replace(EXACT, replayed=5, longest_gap=12.5))
    assert (tmp_path / "chaos.md").read_text().splitlines()[3:] == [
        "| fault | runs | exact | difference | finals | finals changed | longest gap | time to ready |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| slow-replica | 2 | 0 | 5 | 6 | 1 | 12.5 s | 3.2 s |",
    ]


def test_each_nonzero_defect_on_the_path_makes_a_run_inexact() -> None:
    exact = PathVerdict(**asdict(EXACT), uploads=9, told=9, counted=9)
    assert exact.exact
    for name in ("difference", "lost", "twice", "bits_off", "outcomes_off", "misanswered"):
        assert not replace(exact, **{name: 1}).exact


def test_each_nonzero_defect_makes_a_run_inexact() -> None:
    names = ("difference", "published", "finals_off", "replayed", "missing", "doubled", "steps_back")
    assert EXACT.exact
    for name in (*names, "uncounted", "died", "late", "finals_changed"):
        assert not replace(EXACT, **{name: 1}).exact
    assert "longest_gap 4.2" in EXACT.describe()
