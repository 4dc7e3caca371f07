"""`plan` compares mechanisms at one epsilon, in a table, one object, or a plot."""

import json
import math
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.offline.plan import plan_command


def run(line: str) -> Result:
    return CliRunner().invoke(plan_command, line.split())


def test_json_has_a_column_for_each_figure() -> None:
    record = json.loads(run("--values 105 --epsilon 1 --reports 336776 --json").stdout)
    assert record["mechanism"] == ["k-rr", "rappor-one-hot", "rappor"]
    names = ("epsilon", "std_error", "smallest_detectable", "reports_needed")
    assert {len(record[name]) for name in names} == {3}
    assert all(0.999 < epsilon <= 1 for epsilon in record["epsilon"])
    krr = math.sqrt((103 + math.e) / (math.e - 1) ** 2 / 336776)
    assert record["std_error"][0] == pytest.approx(krr, rel=1e-9)
    assert record["best"] == "rappor-one-hot"
    assert record["krr_limit"] == pytest.approx(3 * math.e + 2, rel=1e-6)


def test_few_values_are_for_krr() -> None:
    assert json.loads(run("--values 5 --epsilon 1 --reports 1000 --json").stdout)["best"] == "k-rr"


def test_wanted_error_determines_the_reports() -> None:
    line = "--values 105 --epsilon 1 --reports 1000 --std-error 0.001 --json"
    krr = (103 + math.e) / (math.e - 1) ** 2 / 0.001**2
    assert json.loads(run(line).stdout)["reports_needed"][0] == pytest.approx(krr, rel=1e-6)


def test_undetectable_is_null_and_one_hot_size_is_limited() -> None:
    record = json.loads(run("--values 50000 --epsilon 1 --reports 3000 --json").stdout)
    assert record["mechanism"] == ["k-rr", "rappor"]
    assert record["smallest_detectable"][0] is None


def test_the_table_is_for_people() -> None:
    lines = run("--values 50000 --epsilon 1 --reports 3000").stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["mechanism", "k-rr", "rappor"]
    assert " none " in lines[1]
    assert "least error: rappor; k-RR beats one-hot RAPPOR below 10.2 values" in lines[3]


def test_the_plot_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    path = tmp_path / "plan.png"
    result = run(f"--values 105 --epsilon 1 --reports 3000 --plot {path}")
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_plot_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    path = tmp_path / "absent" / "plan.png"
    result = run(f"--values 105 --epsilon 1 --reports 3000 --plot {path}")
    assert result.exit_code == 1
    assert result.stderr == f"Error: cannot write {path}: No such file or directory\n"


def test_without_matplotlib_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run(f"--values 105 --epsilon 1 --reports 3000 --plot {tmp_path / 'plan.png'}")
    assert result.exit_code == 1
    assert result.stderr == "Error: --plot needs matplotlib: pip install 'deniable[analysis]'\n"


def test_plot_at_the_ends_of_what_can_be_planned(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    for reports in (1, 10**18):
        result = run(f"--values 105 --epsilon 1 --reports {reports} --plot {tmp_path / 'plan.png'}")
        assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"--reports {10**19}", f"{10**19} is not in the range 1<=x<={10**18}"),
        ("--reports 5 --std-error 1e-160", "1e-160 is not in the range 1e-09<=x<=1"),
        ("--reports 0", f"0 is not in the range 1<=x<={10**18}"),
    ],
)
def test_numbers_beyond_planning_are_wrong_usage(arguments: str, message: str) -> None:
    result = run(f"--values 105 --epsilon 1 {arguments}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_epsilon_too_small_for_rappor_is_refused() -> None:
    result = run("--values 105 --epsilon 1e-9 --reports 3000")
    assert result.stderr == "Error: epsilon must be in [1e-06, 16], got 1e-09\n"


@pytest.mark.parametrize("epsilon", ["0", "-1.0", "17", "nan"])
def test_epsilon_out_of_range_is_refused_in_one_line(epsilon: str) -> None:
    result = run(f"--values 105 --epsilon {epsilon} --reports 3000")
    assert result.exit_code == 1
    assert result.stderr == f"Error: epsilon must be in (0, 16], got {float(epsilon)}\n"
