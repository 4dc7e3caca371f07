"""The command `deniable account`: its JSON, its table, its refusals."""

import json
import shlex
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deploy.offline.account import account
from estimators.accounting.accountant import allowed_reports, costs
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor

K_RR = "--mechanism k-rr --k 16 --epsilon 1"
RAPPOR = "--mechanism rappor --f 0.25 --p 0.35 --q 0.65 --hashes 2"
LONGITUDINAL = "--mechanism k-rr-longitudinal --k 6 --epsilon-inf 1 --epsilon-one 0.0719"


def run(line: str) -> Result:
    return CliRunner().invoke(account, shlex.split(line))


def answer(line: str) -> dict[str, Any]:
    ended = run(f"{line} --json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


def test_a_cost_in_full_precision() -> None:
    found = answer(f"{K_RR} --reports 5 --delta 1e-6")
    assert list(found) == ["epsilon_one", "epsilon_inf", "rho", "basic", "zcdp", "rdp", "exact"]
    assert (found["epsilon_one"], found["epsilon_inf"]) == (1.0, None)
    assert found["rho"] == pytest.approx(0.11287922124775325, rel=1e-9)
    assert found.items() >= costs(KRR.from_epsilon(16, 1.0), 5, 1e-6).items()
    assert found["exact"] <= found["rdp"] <= min(found["basic"], found["zcdp"])


def test_a_budget_answers_reports_for_each_bound() -> None:
    found = answer(f"{K_RR} --budget 8")
    assert list(found) == ["epsilon_one", "epsilon_inf", "rho", "reports"]
    assert found["reports"] == {"basic": 8, "zcdp": 8, "rdp": 9, "exact": 10}


@pytest.mark.parametrize("memoized", [False, True])
def test_rappor_is_that_of_the_mechanism(memoized: bool) -> None:
    mechanism = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    flag = "--memoized" if memoized else ""
    found = answer(f"{RAPPOR} --reports 4 {flag}")
    assert found["epsilon_one"] == mechanism.epsilon_one
    assert found["epsilon_inf"] == mechanism.epsilon_inf
    assert found.items() >= costs(mechanism, 4, 1e-6, memoized).items()
    allowed = answer(f"{RAPPOR} --budget 7.7 {flag}")["reports"]
    assert allowed == allowed_reports(mechanism, 7.7, 1e-6, memoized)


def test_memoized_longitudinal_reports_cost_more_than_independent_ones() -> None:
    assert answer(f"{LONGITUDINAL} --reports 8 --memoized")["exact"] == pytest.approx(0.573, abs=1e-3)
    assert answer(f"{LONGITUDINAL} --reports 8")["exact"] == pytest.approx(0.471, abs=1e-3)


def test_unbounded_figures_are_null() -> None:
    assert answer(f"{RAPPOR} --budget 8 --memoized")["reports"] == dict.fromkeys(
        ["basic", "zcdp", "rdp", "exact"]
    )


def test_tables_say_the_same_in_words() -> None:
    costs_table = run(f"{K_RR} --reports 5").stdout.splitlines()
    assert [line.split()[:2] for line in costs_table] == [
        ["epsilon_one", "1"],
        ["epsilon_inf", "unbounded"],
        ["rho", "0.1129"],
        ["basic", "5"],
        ["zcdp", "6.150"],
        ["rdp", "4.989"],
        ["exact", "4.989"],
    ]
    assert costs_table[-1].endswith("epsilon of 5 reports at delta 1e-06")
    assert run(f"{K_RR} --budget 8").stdout.splitlines()[-1].split()[:2] == ["exact", "10"]
    assert run(f"{RAPPOR} --budget 8 --memoized").stdout.splitlines()[-1].split()[:2] == ["exact", "any"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{K_RR} --budget 1e9", "100000 or more"),
        (
            "--mechanism k-rr-longitudinal --k 2 --epsilon-inf 1 --epsilon-one 1e-9 --budget 0.9 --memoized",
            "10000 or more",
        ),
        (f"{K_RR} --budget 0.1", "0"),
    ],
)
def test_largest_tried_number_is_marked(line: str, message: str) -> None:
    assert (
        run(line).stdout.splitlines()[-1].partition(" reports within")[0].split(maxsplit=1)[1].strip()
        == message
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--mechanism k-rr --k 16 --epsilon -1 --reports 5", "epsilon must be in (0, 16], got -1.0"),
        ("--mechanism k-rr --k 1 --epsilon 1 --reports 5", "k must be in [2, 2147483648], got 1"),
        (f"{K_RR} --reports 0", "reports must be in [1, 100000], got 0"),
        (f"{K_RR} --reports 5 --delta 2", "delta must be in (0, 1), got 2.0"),
        (f"{K_RR} --budget nan", "budget must be in (0, inf), got nan"),
        (
            "--mechanism rappor --f 1 --p 0.35 --q 0.65 --hashes 2 --reports 5",
            "f must be in [0, 1), got 1.0",
        ),
        (
            "--mechanism rappor --f 0.5 --p 0.35 --q 0.65 --hashes 0 --reports 5",
            "hashes must be in [1, 256], got 0",
        ),
    ],
)
def test_a_bad_parameter_is_refused_in_one_line(line: str, message: str) -> None:
    ended = run(line)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, "", f"Error: {message}\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--reports 5", "Missing option '--mechanism'"),
        (K_RR, "give either --reports N or --budget E"),
        (f"{K_RR} --reports 5 --budget 1", "give either --reports N or --budget E"),
        ("--mechanism k-rr --k 16 --reports 5", "--mechanism k-rr takes exactly --k --epsilon"),
        (f"{K_RR} --f 0.5 --reports 5", "--mechanism k-rr takes exactly --k --epsilon"),
        (f"{K_RR} --reports many", "'many' is not a valid integer"),
    ],
)
def test_wrong_usage_is_status_2(line: str, message: str) -> None:
    ended = run(line)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in ended.stderr
