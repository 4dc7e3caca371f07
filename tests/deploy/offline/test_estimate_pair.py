"""`deniable estimate k-rr-pair`: figures for programs and for people, refusals in one line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deploy.offline.estimate_krr import estimate
from estimators.frequency.krr import estimate as estimate_krr
from estimators.frequency.pairs.estimate import estimate_pair
from estimators.mechanisms.matrix.pair import PairKRR

COUNTS = np.array([[4000, 1500, 900], [1200, 3000, 1000]])
TYPED = "4000,1500,900\n1200,3000,1000\n"


def run(typed: str, *arguments: str) -> Result:
    return CliRunner().invoke(
        estimate, ["k-rr-pair", "--epsilon", "3", "--input", "-", *arguments], input=typed
    )


def test_record_is_that_of_the_estimator() -> None:
    found = json.loads(run(TYPED, "--json").stdout)
    mechanism = PairKRR.from_epsilons(2, 3, 1.5, 1.5)
    expected = estimate_pair(COUNTS.ravel(), mechanism)
    assert found["pair"] == ["0 / 0", "0 / 1", "0 / 2", "1 / 0", "1 / 1", "1 / 2"]
    assert found["frequency"] == expected.frequency.tolist()
    assert (found["N"], found["epsilon"]) == (11_600, mechanism.epsilon)
    margin = estimate_krr(COUNTS.sum(axis=1), mechanism.first)
    assert found["margins"][0]["low"] == margin.low.tolist()
    assert found["independence"]["rejected"] is True
    assert found["independence"]["degrees"] == 2


def test_table_ends_with_the_test() -> None:
    assert run(TYPED).stdout.splitlines()[-1].startswith("the fields depend on each other: chi-square ")
    assert "the fields may be independent: chi-square 0 with 1 degree, p = 1" in run("20,10\n20,10\n").stdout
    assert "too few reports to test" in run("4,0\n0,4\n").stdout


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("1,2\n3\n", "stdin: every line must have as many counts as the first"),
        ("1,2\n3,x\n", "stdin, count 4: must be a whole number in [0, 9007199254740992], got text"),
        ("1,2\n", "k must be in [2, 2147483648], got 1"),
        ("0,0\n0,0\n", "counts must hold at least 1 report, got 0"),
    ],
)
def test_wrong_counts_are_refused_in_one_line(typed: str, message: str) -> None:
    ended = run(typed)
    assert (ended.exit_code, ended.output) == (1, f"Error: {message}\n")
