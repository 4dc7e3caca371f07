"""`deniable estimate k-rr`: figures for programs and for people, refusals in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deploy.offline.estimate_krr import estimate
from estimators.frequency.krr import estimate as estimate_frequencies
from estimators.mechanisms.krr import KRR
from tests.support.paths import VECTORS

CASES = json.loads((VECTORS / "krr_estimators.json").read_text())["cases"]
COUNTS = ["--counts", "50,30,15,5"]
COUNT = f"must be a whole number in [0, {2**53}]"


def run(*arguments: str, typed: str | None = None) -> Result:
    """Runs `deniable estimate k-rr` at epsilon ln 3, with what is typed as stdin."""
    return CliRunner().invoke(estimate, ["k-rr", "--epsilon", "1.0986122886681098", *arguments], input=typed)


def record(*arguments: str, typed: str | None = None) -> dict[str, Any]:
    ended = run("--json", *arguments, typed=typed)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize(
    ("estimator", "key"), [("mle", "mle"), ("inv", "inv"), ("inv-n", "inv_n"), ("inv-p", "inv_p")]
)
def test_published_numbers(estimator: str, key: str) -> None:
    found = record(*COUNTS, "--estimator", estimator)
    assert found["frequency"] == pytest.approx(CASES[0][key], abs=1e-9)
    assert found["std_error"] == pytest.approx(CASES[0]["inv_std_error"], abs=1e-9)
    assert (found["N"], found["estimator"]) == (100, estimator)


def test_record_has_arrays_of_equal_length_in_full_precision() -> None:
    found = record(*COUNTS)
    arrays = {name: value for name, value in found.items() if isinstance(value, list)}
    assert set(arrays) == {"frequency", "count", "std_error", "low", "high", "significant"}
    assert {len(array) for array in arrays.values()} == {4}
    assert arrays["count"] == [frequency * 100 for frequency in arrays["frequency"]]
    full = estimate_frequencies(np.array([50, 30, 15, 5]), KRR.from_epsilon(4, 1.0986122886681098))
    assert arrays["low"] == full.low.tolist()
    assert found["epsilon"] == pytest.approx(1.0986122886681098, rel=1e-15)
    assert (found["p"], found["q"]) == (pytest.approx(0.5), pytest.approx(1 / 6))


def test_mle_is_the_default() -> None:
    assert record(*COUNTS)["estimator"] == "mle"


def test_ibu_says_how_it_ended() -> None:
    assert record(*COUNTS, "--estimator", "ibu", "--iterations", "3")["diagnostics"] == {
        "residual": pytest.approx(0.08, abs=0.08),
        "iterations": 3,
    }
    stopped = run(*COUNTS, "--estimator", "ibu", "--tolerance", "0.5")
    assert "iterations: 1\n" in stopped.stdout


def test_file_and_stdin_give_the_same_counts(tmp_path: Path) -> None:
    (tmp_path / "counts.txt").write_text("50\n 30 \r\n15\n5\n\n")
    expected = record(*COUNTS)
    assert record("--input", str(tmp_path / "counts.txt")) == expected
    assert record("--input", "-", typed="50\n30\n15\n5") == expected


def test_the_table_has_a_line_for_each_value() -> None:
    lines = run(*COUNTS).stdout.splitlines()
    assert lines[0] == "100 reports, estimator mle, 95 % intervals"
    assert lines[1].split() == ["value", "frequency", "std", "error", "low", "high", "count"]
    low = record(*COUNTS)["low"][0]
    assert lines[2].split() == ["0", "0.750000", "0.150000", f"{low:.6f}", "1.000000", "75.0"]
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--counts", "5"], "there must be 2 to 1400000 counts, got 1"),
        (["--counts", ""], "there must be 2 to 1400000 counts, got 0"),
        (["--counts", "0,0"], "counts must hold at least 1 report, got 0"),
        (["--counts", "5,-1"], f"--counts, number 2: {COUNT}, got -1"),
        (["--counts", "5,,1"], f"--counts, number 2: {COUNT}, got nothing"),
        (["--counts", "nan,2"], f"--counts, number 1: {COUNT}, got nan"),
        (["--counts", "abc"], f"--counts, number 1: {COUNT}, got text"),
        (["--counts", "5,LAX"], f"--counts, number 2: {COUNT}, got text"),
        (["--counts", f"{2**53 + 1},1"], f"--counts, number 1: {COUNT}, got {2**53 + 1}"),
        (["--counts", f"{2**53},1"], f"counts must sum to at most {2**53}, got {2**53 + 1}"),
    ],
)
def test_bad_counts_are_wrong_usage(arguments: list[str], message: str) -> None:
    ended = run(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[3:] == [f"Error: {message}"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "there must be 2 to 1400000 counts, got 0"),
        ("\n", "there must be 2 to 1400000 counts, got 0"),
        ("0\n" * 1_400_001, "there must be 2 to 1400000 counts, got 1400001"),
        ("5\n\n6\n", f"stdin, line 2: {COUNT}, got nothing"),
        ("5\nx\n", f"stdin, line 2: {COUNT}, got text"),
        ("\x00\n5", f"stdin, line 1: {COUNT}, got text"),
    ],
)
def test_bad_lines_are_refused_in_one_line(typed: str, words: str) -> None:
    ended = run("--input", "-", typed=typed)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: {words}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --counts N,N,... or --input FILE"),
        ([*COUNTS, "--input", "-"], "give either --counts N,N,... or --input FILE"),
        ([*COUNTS, "--estimator", "em"], "'em' is not one of 'mle', 'inv', 'inv-n', 'inv-p', 'ibu'"),
        ([*COUNTS, "--iterations", "0"], "0 is not in the range x>=1"),
        ([*COUNTS, "--tolerance", "inf"], "'--tolerance': must be a finite number, got inf"),
        (["--epsilon", "17", *COUNTS], "'--epsilon': 17.0 is not in the range 0<x<=16"),
        (["--epsilon", "nan", *COUNTS], "'--epsilon': must be a finite number, got nan"),
        ([*COUNTS, "--tolerance", "-1"], "-1.0 is not in the range x>=0"),
        (["--input", "nothing.txt"], "'nothing.txt': No such file or directory"),
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], words: str) -> None:
    ended = run(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert words in ended.stderr
