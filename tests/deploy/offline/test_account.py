"""The command `deniable account`: its JSON, its table, its refusals."""

import json
import math
import shlex
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deniable.deploy.offline.account import account
from deniable.estimators.accounting.accountant import allowed_reports, costs
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.accounting.shuffling.windows import windows_epsilon
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.messages import PinMessages, refusal_of

K_RR = "--mechanism k-rr --k 16 --epsilon 1"
RAPPOR = "--mechanism rappor --f 0.25 --p 0.35 --q 0.65 --hashes 2"
LONGITUDINAL = "--mechanism k-rr-longitudinal --k 6 --epsilon-inf 1 --epsilon-one 0.0719"
LONGITUDINAL_HASH = "--mechanism local-hash-longitudinal --epsilon-inf 2 --epsilon-one 1"


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
    figures = ["epsilon_one", "epsilon_inf", "rho", "basic", "zcdp", "rdp", "exact", "values", "any_values"]
    assert list(found) == [*figures, "any_values_condition"]
    assert (found["epsilon_one"], found["epsilon_inf"]) == (1.0, None)
    assert found["any_values"] == found["exact"]
    assert found["rho"] == pytest.approx(0.11287922124775325, rel=1e-9)
    assert found.items() >= costs(KRR.from_epsilon(16, 1.0), 5, 1e-6).items()
    assert found["exact"] <= found["rdp"] <= min(found["basic"], found["zcdp"])


def test_local_hash_is_that_of_its_buckets() -> None:
    found = json.loads(run("--mechanism local-hash --epsilon 1 --reports 5 --json").stdout)
    tree = json.loads(run("--mechanism prefix-tree --epsilon 1 --reports 5 --json").stdout)
    assert tree == found
    assert found == json.loads(run("--mechanism k-rr --k 3 --epsilon 1 --reports 5 --json").stdout)


@pytest.mark.slow
def test_longitudinal_hashing_counts_buckets_and_changes() -> None:
    line = "--mechanism local-hash-longitudinal --epsilon-inf 2 --epsilon-one 1 --memoized"
    found = answer(f"{line} --reports 50")
    assert (found["epsilon_inf"], found["lifetime"], found["basic"]) == pytest.approx((2, 6, 6), rel=1e-12)
    assert answer(f"{line} --changes 1 --reports 50")["lifetime"] == pytest.approx(4, rel=1e-12)
    unchanged = answer(f"{line} --changes 0 --reports 50")
    longitudinal = "--mechanism k-rr-longitudinal --k 3 --epsilon-inf 2 --epsilon-one 1 --memoized"
    assert unchanged["any_values"] == unchanged["exact"]
    alone = answer(f"{longitudinal} --reports 50")
    assert (unchanged["values"], alone.pop("values")) == ("any", "unchanged")
    assert alone.pop("any_values") == found["any_values"]
    assert alone.pop("lifetime") == found["lifetime"]
    conditions = [alone.pop("any_values_condition"), alone.pop("lifetime_condition")]
    assert conditions == ["if it is known when values change"] * 2
    assert unchanged["any_values_condition"] is None
    assert unchanged.items() >= alone.items()
    assert "lifetime     6 " in run(f"{line} --budget 7").stdout


def test_a_budget_answers_reports_for_each_bound() -> None:
    found = answer(f"{K_RR} --budget 8")
    figures = ["epsilon_one", "epsilon_inf", "rho", "reports", "values", "reports_any_values"]
    assert list(found) == [*figures, "reports_any_values_condition"]
    assert found["reports"] == {"basic": 8, "zcdp": 8, "rdp": 9, "exact": 10}


@pytest.mark.slow
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


def test_longitudinal_reports_cost_more_than_independent_ones() -> None:
    independent = costs(LongitudinalKRR.from_epsilons(6, 1.0, 0.0719), 8, 1e-6)["exact"]
    assert independent == pytest.approx(0.471, abs=1e-3)
    assert answer(f"{LONGITUDINAL} --reports 8")["exact"] == pytest.approx(0.573, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "asked"), [(LONGITUDINAL, "--reports 3"), (LONGITUDINAL_HASH, "--budget 0.5")]
)
def test_mechanisms_that_always_memoize_have_one_figure(line: str, asked: str) -> None:
    assert answer(f"{line} {asked}") == answer(f"{line} {asked} --memoized")
    assert run(f"{line} {asked}").stdout == run(f"{line} {asked} --memoized").stdout
    assert run(f"{line} {asked}").stdout.splitlines()[1].endswith("one permanent response, always memoized")


def test_three_reports_of_longitudinal_hashing_are_not_stated_below_their_cost() -> None:
    assert answer(f"{LONGITUDINAL_HASH} --reports 3")["exact"] == pytest.approx(3.418, abs=1e-3)
    assert "always memoized" not in run(f"{RAPPOR} --reports 3 --memoized").stdout


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (0, "at most 0 changes of bucket, so 1 of its 3 buckets, which cost at most 4 for ever"),
        (1, "at most 1 change of bucket, so 2 of its 3 buckets, which cost at most 8 for ever, if"),
        (9, "at most 9 changes of bucket, so 3 of its 3 buckets, which cost at most 12 for ever, if"),
    ],
)
def test_changes_say_what_a_client_shows_at_most(changes: int, sentence: str) -> None:
    line = "--mechanism local-hash-longitudinal --epsilon-inf 4 --epsilon-one 1 --reports 9"
    whole = f"a client shows {sentence}"
    if changes:
        whole += " it is known when buckets change"
    assert run(f"{line} --changes {changes}").stdout.splitlines()[-1] == whole
    assert "a client shows" not in run(line).stdout


@pytest.mark.slow
def test_what_holds_for_ever_only_if_changes_are_known_says_so() -> None:
    """A bucket that never changes and one that does are told apart without bound by many reports."""
    condition = "if it is known when buckets change"
    for line, is_conditional in {"--reports 1000": True, "--reports 3": False, "--budget 7": True}.items():
        rows = run(f"{LONGITUDINAL_HASH} {line}").stdout.splitlines()[-4:]
        assert [row.endswith(condition) for row in rows] == [is_conditional] * 4
        found, name = answer(f"{LONGITUDINAL_HASH} {line}"), "any_values_condition"
        stated = found["reports_" + name if "reports" in found else name]
        assert (found["lifetime_condition"], stated) == (condition, condition if is_conditional else None)
    *unchanged, free = run(f"{LONGITUDINAL} --reports 1000").stdout.splitlines()
    conditional = [row.split()[0] for row in unchanged if "if it is known" in row]
    assert conditional == ["lifetime"]
    assert free.endswith("whatever the values do, if it is known when values change")
    for line in ("--reports 1000", "--budget 7"):
        assert condition not in run(f"{LONGITUDINAL_HASH} {line} --changes 0").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"{LONGITUDINAL_HASH} --reports 3", "bound"),
        (f"{LONGITUDINAL_HASH} --reports 1", "exact"),
        (f"{LONGITUDINAL_HASH} --reports 3 --changes 0", "exact"),
        (f"{LONGITUDINAL_HASH} --budget 4", "bound"),
        (f"{LONGITUDINAL_HASH} --budget 7", "bound"),
        (f"{LONGITUDINAL} --reports 3", "exact"),
    ],
)
def test_tables_call_no_bound_exact(line: str, name: str) -> None:
    """Three reports of longitudinal hashing with changing buckets cost at most 3.418, not exactly so."""
    rows = [row.split()[0] for row in run(line).stdout.splitlines()]
    assert [row for row in rows if row in ("exact", "bound")] == [name]
    assert "bound" not in answer(line)


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
    assert costs_table[-1].endswith("epsilon of 5 reports at delta 1e-06, whatever the values do")
    assert run(f"{K_RR} --budget 8").stdout.splitlines()[-1].split()[:2] == ["exact", "10"]
    rows = run(f"{RAPPOR} --budget 8 --memoized").stdout.splitlines()[-2:]
    assert [row.split()[:2] for row in rows] == [["exact", "any"], ["any", "4"]]
    assert "while the value stays the same" in rows[0]
    assert "whatever the values do, if it is known when values change" in rows[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{K_RR} --budget 1e9", "100000 or more"),
        pytest.param(
            "--mechanism k-rr-longitudinal --k 2 --epsilon-inf 1 --epsilon-one 1e-6 --budget 0.9 --memoized",
            "10000 or more",
            marks=pytest.mark.slow,
        ),
        (f"{K_RR} --budget 0.1", "0"),
    ],
)
def test_largest_tried_number_is_marked(line: str, message: str) -> None:
    (row,) = (row for row in run(line).stdout.splitlines() if row.startswith("exact"))
    assert row.partition(" reports within")[0].split(maxsplit=1)[1].strip() == message


def test_messages(pin_messages: PinMessages) -> None:
    longitudinal_hash = "--mechanism local-hash-longitudinal --epsilon-inf 2"
    rappor = "--mechanism rappor --p 0.35 --q 0.65 --reports 5"
    pair = "--epsilon 2 --reports 3"
    lines = {
        "epsilon is negative": "--mechanism k-rr --k 16 --epsilon -1 --reports 5",
        "epsilon-inf is too large": (
            "--mechanism k-rr-longitudinal --k 4 --epsilon-inf 17 --epsilon-one 1 --reports 5"
        ),
        "epsilon-one exceeds epsilon-inf": f"{longitudinal_hash} --epsilon-one 3 --reports 5",
        "epsilon-one is NaN": f"{longitudinal_hash} --epsilon-one nan --reports 5",
        "no report": f"{K_RR} --reports 0",
        "delta is 2": f"{K_RR} --reports 5 --delta 2",
        "the budget is NaN": f"{K_RR} --budget nan",
        "f is 1": f"{rappor} --f 1 --hashes 2",
        "hashes are 0": f"{rappor} --f 0.5 --hashes 0",
        "no mechanism": "--reports 5",
        "neither reports nor budget": K_RR,
        "an option is missing": "--mechanism k-rr --k 16 --reports 5",
        "an option of another mechanism": f"{K_RR} --f 0.5 --reports 5",
        "an option of none but pairs": f"--mechanism one-hot-pair {pair} --k 17 --second-k 3 --f 0.5",
        "reports are a word": f"{K_RR} --reports many",
        "changes of another mechanism": f"{LONGITUDINAL} --reports 5 --changes 1",
        "k of a pair is 1": f"--mechanism k-rr-pair --k 1 --second-k 3 {pair}",
        "second-k of a pair is 0": f"--mechanism k-rr-pair --k 3 --second-k 0 {pair}",
        "second-k of a pair is too large": f"--mechanism k-rr-pair --k 2 --second-k 1001 {pair}",
        "k of a pair of bits is 1": f"--mechanism one-hot-pair --k 1 --second-k 3 {pair}",
        "second-k of a pair of bits is 0": f"--mechanism one-hot-pair --k 3 --second-k 0 {pair}",
        "second-k of a pair of bits is too large": (f"--mechanism one-hot-pair --k 2 --second-k 1001 {pair}"),
        **{
            f"{number[:24]} shuffled reports": f"{K_RR} --shuffled {number}"
            for number in ("unknown", "0", "-5", "1e5", "1000000000001", "9" * 5000)
        },
        **{
            f"{windows} windows of shuffled reports": f"{SHUFFLED} --reports {windows}"
            for windows in (0, 10_001, 10**9)
        },
        "a budget of shuffled reports": f"{SHUFFLED} --budget 5",
        "memoized RAPPOR, shuffled": f"{RAPPOR} --memoized --shuffled 100000",
        "memoized k-RR, shuffled": f"{K_RR} --memoized --shuffled 100000",
        "longitudinal k-RR, shuffled": f"{LONGITUDINAL} --shuffled 100000",
        "longitudinal hashing with few changes, shuffled": (
            f"{longitudinal_hash} --epsilon-one 1 --shuffled 100000 --changes 1"
        ),
    }
    messages = {what: refusal_of(run(line), 2) for what, line in lines.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_a_pair_of_bits_costs_what_one_hot_costs() -> None:
    found = answer("--mechanism one-hot-pair --epsilon 2 --reports 3")
    p = 1 / (math.exp(2) + 1)
    assert found == answer(f"--mechanism rappor --f 0 --p {p} --q 0.5 --hashes 1 --reports 3")
    assert found["epsilon_one"] == pytest.approx(2, abs=1e-8)
    assert found["epsilon_one"] <= 2


@pytest.mark.parametrize("size", ["--k 17 --second-k 3", "--k 40", "--second-k 2"])
def test_numbers_of_values_do_not_change_what_a_pair_of_bits_costs(size: str) -> None:
    line = "--mechanism one-hot-pair --epsilon 2 --reports 3"
    assert answer(f"{line} {size}") == answer(line)
    assert run(f"{line} {size} --f 0.5").exit_code == 2


def test_a_pair_costs_what_both_fields_cost() -> None:
    found = answer("--mechanism k-rr-pair --k 17 --second-k 3 --epsilon 2 --reports 3")
    assert found["epsilon_one"] <= 2
    assert found["basic"] == pytest.approx(6)
    assert found["exact"] <= found["rdp"] <= found["basic"]


def test_number_is_that_of_the_mechanism() -> None:
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 256, 1.0)
    found = answer("--mechanism number --epsilon 1 --reports 20")
    assert (found["epsilon_one"], found["epsilon_inf"]) == (mechanism.epsilon, None)
    assert found.items() >= costs(mechanism, 20, 1e-6).items()


SHUFFLED = f"{K_RR} --shuffled 100000"


@pytest.mark.slow
def test_a_report_among_shuffled_ones_has_two_certified_values() -> None:
    found = answer(f"{SHUFFLED} --delta 1e-6")
    assert list(found) == [
        "epsilon_one", "epsilon_inf", "rho", "shuffled", "shuffled_at_least", "shuffled_attained",
    ]  # fmt: skip
    blanket = blanket_of(KRR.from_epsilon(16, 1.0))
    assert (found["shuffled_at_least"], found["shuffled"]) == shuffled_epsilon(blanket, 100_000, 1e-6)
    assert found["shuffled_attained"] <= found["shuffled"] == pytest.approx(0.00529, abs=5e-6)
    assert answer(f"{SHUFFLED} --delta 1e-9")["shuffled"] > found["shuffled"]


def test_one_shuffled_report_is_alone() -> None:
    lines = run(SHUFFLED.replace("100000", "1")).stdout.splitlines()
    assert any("one report shuffled alone, at delta" in line for line in lines)
    assert not any("among 1 " in line for line in lines)


def test_one_shuffled_report_costs_no_more_than_one() -> None:
    found = answer("--mechanism k-rr --k 6 --epsilon 2 --shuffled 1")
    assert found["shuffled_at_least"] <= found["shuffled"] <= found["epsilon_one"]


@pytest.mark.all
def test_several_windows_of_shuffled_reports_are_composed() -> None:
    found = answer(f"{SHUFFLED} --reports 30")
    assert found["shuffled_windows"] == windows_epsilon(
        blanket_of(KRR.from_epsilon(16, 1.0)), 100_000, 1e-6, 30
    )
    assert found["exact"] == answer(f"{K_RR} --reports 30")["exact"]
    lines = run(f"{SHUFFLED} --reports 30").stdout.splitlines()
    assert lines[-6].startswith("shuffled     0.005290       one report among 100,000 shuffled ones")
    assert "30 such reports, one in each of 30 windows" in lines[-5]


def test_wherever_a_figure_stands_the_text_says_against_whom() -> None:
    text = run(SHUFFLED).stdout
    assert "against whoever sees only what comes out of the shuffle" in text
    assert "Against broker, edge or relay's memory nothing is gained" in text
    assert "not one chosen by earlier reports" in text
    assert "nothing is gained" not in run(f"{K_RR} --reports 5").stdout


def test_shuffled_reports_of_a_prefix_tree_are_those_of_a_level() -> None:
    line = "--mechanism prefix-tree --epsilon 1 --shuffled 100000"
    assert "one report among 100,000 shuffled ones of its level, at delta 1e-06" in run(line).stdout
