"""`deniable estimate k-rr`: figures for programs and for people, refusals in one line."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.deploy.offline.estimate_krr import estimate
from deniable.estimators.frequency.krr import estimate as estimate_frequencies
from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages, refusal_of
from tests.support.paths import VECTORS

CASES = json.loads((VECTORS / "krr_estimators.json").read_text())["cases"]
COUNTS = ["--counts", "50,30,15,5"]


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
        "fit_p_value": pytest.approx(0.003, abs=1e-4),
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


def test_messages_of_counts(pin_messages: PinMessages) -> None:
    counts = {
        "one count": "5",
        "no count": "",
        "no report": "0,0",
        "a negative count": "5,-1",
        "an empty count": "5,,1",
        "NaN": "nan,2",
        "a word": "abc",
        "a word behind a count": "5,LAX",
        "a count beyond exact floats": f"{2**53 + 1},1",
        "a sum beyond exact floats": f"{2**53},1",
    }
    messages = {what: refusal_of(run("--counts", given), 2) for what, given in counts.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_messages_of_lines(pin_messages: PinMessages) -> None:
    lines = {
        "no line": "",
        "an empty line": "\n",
        "too many lines": "0\n" * 1_400_001,
        "an empty line between others": "5\n\n6\n",
        "a letter": "5\nx\n",
        "a zero byte": "\x00\n5",
    }
    messages = {what: refusal_of(run("--input", "-", typed=typed), 1) for what, typed in lines.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_messages_of_options(pin_messages: PinMessages) -> None:
    options: dict[str, list[str]] = {
        "counts and a file": [*COUNTS, "--input", "-"],
        "an unknown estimator": [*COUNTS, "--estimator", "em"],
        "iterations are 0": [*COUNTS, "--iterations", "0"],
        "tolerance is infinite": [*COUNTS, "--tolerance", "inf"],
        "tolerance is negative": [*COUNTS, "--tolerance", "-1"],
        "epsilon is too large": ["--epsilon", "17", *COUNTS],
        "epsilon is NaN": ["--epsilon", "nan", *COUNTS],
    }
    messages = {what: refusal_of(run(*given), 2) for what, given in options.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})
