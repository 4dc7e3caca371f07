"""`deniable estimate k-rr-pair`: figures for programs and for people, refusals in one line."""

import json
from functools import partial

import numpy as np
from click.testing import CliRunner, Result

from deniable.deploy.offline.estimate_krr import estimate
from deniable.estimators.frequency.krr import estimate as estimate_krr
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from tests.support.messages import PinMessages, refusal_of

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


def test_messages(pin_messages: PinMessages) -> None:
    counts = {
        "a count is missing": "1,2\n3\n",
        "a count is text": "1,2\n3,x\n",
        "one value of the first field": "1,2\n",
        "no report": "0,0\n0,0\n",
    }
    pin_messages({what: partial(str, refusal_of(run(typed), 1)) for what, typed in counts.items()})
