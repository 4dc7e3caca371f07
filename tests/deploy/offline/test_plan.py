"""`plan` compares mechanisms at one epsilon, in a table, one object, or a plot."""

import json
import math
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable.deploy.offline.check import check
from deniable.deploy.offline.plan import plan_command
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.planning import best_bloom
from tests.support.messages import PinMessages, refusal_of


def run(line: str) -> Result:
    return CliRunner().invoke(plan_command, line.split())


def test_one_report_is_no_plural() -> None:
    shown = run("--values 2 --epsilon 16 --reports 1 --levels 2 --std-error 1").stdout
    assert "2 levels: 1 report finds next to nothing" in shown
    assert "; 1 report for 1\n" in shown


def test_json_has_a_column_for_each_figure() -> None:
    record = json.loads(run("--values 105 --epsilon 1 --reports 336776 --json").stdout)
    assert record["mechanism"] == ["k-rr", "rappor-one-hot", "local-hash", "rappor", "subset-selection"]
    names = ("epsilon", "std_error", "smallest_detectable", "reports_needed")
    assert {len(record[name]) for name in names} == {5}
    assert all(0.999 < epsilon <= 1 for epsilon in record["epsilon"])
    krr = math.sqrt((103 + math.e) / (math.e - 1) ** 2 / 336776)
    assert record["std_error"][0] == pytest.approx(krr, rel=1e-9)
    assert record["best"] == "subset-selection"
    assert record["krr_limit"] == pytest.approx(3 * math.e + 2, rel=1e-6)


def test_pairs_of_fields_are_planned_with_shared_epsilon_and_as_bits() -> None:
    line = "--values 17 --second-values 3 --epsilon 4 --reports 336776"
    found = json.loads(run(f"{line} --json").stdout)
    assert found["asked"]["values"] == 17
    assert found["second_values"] == 3
    assert found["pair"]["std_error"] == pytest.approx(0.0010405, rel=1e-4)
    assert found["pair"]["epsilon"] <= 4
    rare = 4 * math.exp(4) / math.expm1(4) ** 2 / 336_776
    assert found["one_hot_pair"]["std_error"] == pytest.approx(math.sqrt(rare), rel=1e-6)
    assert run(line).stdout.splitlines()[-4:] == [
        "k-rr-pair: a rare pair of values has a std error of 0.001041, detectable 0.004588;",
        "3,647 reports for 0.01; a rare value of the first field has 0.001276",
        "one-hot-pair: a rare pair of values has a std error of 0.000475, detectable 0.002088;",
        "761 reports for 0.01; a rare value of the first field has 0.000823",
    ]
    assert "pair" not in json.loads(run("--values 17 --epsilon 4 --reports 336776 --json").stdout)


@pytest.mark.slow
def test_growth_at_epsilon_1_finds_next_to_nothing() -> None:
    """Half a million reports; at epsilon 4 most of the top 32 of 120,000 texts."""
    line = "--values 120000 --reports 500000 --levels 5"
    (first, second) = run(f"{line} --epsilon 1").stdout.splitlines()[-2:]
    assert first.startswith(
        "prefix-tree, 5 levels: 500,000 reports find next to nothing without a list: about 2.6"
    )
    assert second.endswith("one with a share of 0.026 is found as often as not")
    growth = json.loads(run(f"{line} --epsilon 4 --json").stdout)["growth"]
    assert (growth["levels"], growth["reports"], growth["different"]) == (5, 500_000, 120_000)
    assert 20 < growth["expected"] < 24
    assert growth["least_share"] == pytest.approx(0.0037, rel=0.05)
    assert "find some without a list" in run(f"{line} --epsilon 4").stdout
    assert "growth" not in json.loads(run("--values 17 --epsilon 4 --reports 336776 --json").stdout)


def test_so_few_reports_that_no_share_is_found_are_said_to_be() -> None:
    line = "--values 1000 --epsilon 1 --reports 100 --levels 5"
    assert run(line).stdout.endswith("1 / rank; with so few, no share is enough for an even chance\n")
    assert json.loads(run(f"{line} --json").stdout)["growth"]["least_share"] is None


def test_all_of_few_texts_are_not_next_to_nothing() -> None:
    line = run(f"--values 2 --epsilon 1 --reports {10**18} --levels 2").stdout.splitlines()[-2]
    assert "reports find some without a list: about 2.0 of the most frequent" in line


@pytest.mark.all
def test_growth_is_planned_for_shuffled_reports() -> None:
    line = "--values 1000 --reports 1000000 --levels 4 --shuffled-epsilon 1 --shuffled 1000000 --json"
    growth = json.loads(run(line).stdout)["growth"]
    assert growth["shuffled"] <= 1 < growth["epsilon"]
    said = run(line.removesuffix(" --json")).stdout
    assert "(for rappor an eighth, for prefix-tree 1 / 4: cohorts and levels are in clear)" in said


def test_error_of_the_median_of_a_number_is_planned() -> None:
    number = json.loads(run("--values 2 --epsilon 1 --reports 100000 --json").stdout)["number"]
    assert number["median_std_error"] == pytest.approx(0.00753, rel=1e-3)
    assert number["reports_needed"] == pytest.approx(54_000, rel=0.1)
    (line, next_line) = run("--values 2 --epsilon 1 --reports 100000").stdout.splitlines()[-2:]
    assert line.startswith("number: the median of evenly spread ones has a std error of 0.0075")
    assert number["median_interval"] == pytest.approx(30 / 256)
    assert next_line == (
        f"range, and a 95 % interval 0.117188 wide; {number['reports_needed']:,} reports for 0.01"
    )


def test_few_values_are_for_krr() -> None:
    assert json.loads(run("--values 5 --epsilon 1 --reports 1000 --json").stdout)["best"] == "k-rr"


def test_wanted_error_determines_the_reports() -> None:
    line = "--values 105 --epsilon 1 --reports 1000 --std-error 0.001 --json"
    krr = (103 + math.e) / (math.e - 1) ** 2 / 0.001**2
    assert json.loads(run(line).stdout)["reports_needed"][0] == pytest.approx(krr, rel=1e-6)


def test_undetectable_is_null_and_one_hot_size_is_limited() -> None:
    record = json.loads(run("--values 50000 --epsilon 1 --reports 3000 --json").stdout)
    assert record["mechanism"] == ["k-rr", "local-hash", "rappor"]
    assert record["smallest_detectable"][0] is None


def test_the_table_is_for_people() -> None:
    lines = run("--values 50000 --epsilon 1 --reports 3000").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["mechanism", "k-rr", "local-hash", "rappor"]
    assert " none " in lines[1]
    assert "least error: local-hash; k-RR beats one-hot RAPPOR below 10.2 values" in lines[4]


def test_an_error_below_that_of_collisions_needs_no_number_of_reports() -> None:
    line = "--values 100 --epsilon 1 --reports 1000 --std-error 0.001"
    assert json.loads(run(f"{line} --json").stdout)["reports_needed"][2] is None
    assert run(line).stdout.splitlines()[3].split()[::4] == ["local-hash", "none"]


@pytest.mark.slow
def test_the_plot_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    path = tmp_path / "plan.png"
    result = run(f"--values 105 --epsilon 1 --reports 3000 --plot {path}")
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_messages_of_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    line = "--values 105 --epsilon 1 --reports 3000 --plot"
    absent = refusal_of(run(f"{line} {tmp_path / 'absent' / 'plan.png'}"), 1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = refusal_of(run(f"{line} {tmp_path / 'plan.png'}"), 1)
    pin_messages({"no such folder": lambda: absent, "matplotlib is missing": lambda: missing})


@pytest.mark.parametrize("name", ["plan.txt", "plan", "plan.svg"])
def test_plot_of_another_format_is_wrong_usage(tmp_path: Path, name: str) -> None:
    result = run(f"--values 105 --epsilon 1 --reports 3000 --plot {tmp_path / name}")
    assert (result.exit_code, result.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert "--plot" in result.stderr


@pytest.mark.all
def test_plot_at_the_ends_of_what_can_be_planned(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    for reports in (1, 10**18):
        result = run(f"--values 105 --epsilon 1 --reports {reports} --plot {tmp_path / 'plan.png'}")
        assert (result.exit_code, result.stderr) == (0, "")


def test_messages_of_options(pin_messages: PinMessages) -> None:
    values, both = "--values 105 --epsilon 1", "--values 16 --reports 10000"
    lines = {
        "too many reports": f"{values} --reports {10**19}",
        "no report": f"{values} --reports 0",
        "std-error is too small": f"{values} --reports 5 --std-error 1e-160",
        "epsilon is too small for RAPPOR": "--values 105 --epsilon 1e-9 --reports 3000",
        **{
            f"epsilon is {epsilon}": f"--values 105 --epsilon {epsilon} --reports 3000"
            for epsilon in ("0", "-1.0", "17", "nan")
        },
        "no epsilon": both,
        "two kinds of epsilon": f"{both} --epsilon 1 --shuffled-epsilon 1",
        "shuffled without its epsilon": f"{both} --epsilon 1 --shuffled 5",
        "a file without shuffled epsilon": f"{both} --epsilon 1 --config x",
        "a file beside a number of shuffled ones": f"{both} --shuffled-epsilon 1 --shuffled 9 --config x",
        "unlisted strings without a share": f"{both} --epsilon 1 --unlisted-strings 5",
        "unlisted strings with a share of 0": f"{both} --epsilon 1 --unlisted 0 --unlisted-strings 5",
        **{
            f"shuffled epsilon is {epsilon}": f"{both} --shuffled-epsilon {epsilon}"
            for epsilon in ("0.0001", "-1.0", "17.0", "nan", "inf")
        },
    }
    messages = {what: refusal_of(run(line), 2) for what, line in lines.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


@pytest.mark.slow
def test_table_says_which_unlisted_strings_are_assumed() -> None:
    line = "--values 100 --epsilon 1 --reports 1000000"
    assert "unlisted" not in run(line).stdout
    many, one = (run(f"{line} --unlisted 0.2 --unlisted-strings {n}").stdout for n in (5, 1))
    assert "assumed: a share of 0.2 of the reports are of 5 unlisted strings, equally frequent; the" in many
    assert "are of 1 unlisted string; the rest falls as 1 / rank." in one


@pytest.mark.slow
def test_unlisted_reports_raise_the_error_of_text_only() -> None:
    line = "--values 105 --epsilon 1 --reports 336776 --json"
    alone, others = (json.loads(run(f"{line}{more}").stdout) for more in ("", " --unlisted 0.2"))
    assert "unlisted" not in alone["asked"]
    assert (others["asked"]["unlisted"], others["asked"]["unlisted_strings"]) == (0.2, 5)
    assert others["std_error"][:2] == alone["std_error"][:2]
    one = json.loads(run(f"{line} --unlisted 0.5 --unlisted-strings 1").stdout)
    assert one["std_error"][2] > 1.1 * alone["std_error"][2]
    assert others["std_error"][3] > 1.5 * alone["std_error"][3]
    assert others["smallest_detectable"][3] > 1.5 * alone["smallest_detectable"][3]


@pytest.mark.slow
def test_epsilons_are_chosen_for_shuffled_reports() -> None:
    line = "--values 16 --shuffled-epsilon 0.0675 --reports 10000 --shuffled 10000 --second-values 3"
    found = json.loads(run(f"{line} --json").stdout)
    assert found["asked"] == {
        "values": 16, "epsilon": None, "reports": 10_000, "std_error": 0.01, "shuffled_epsilon": 0.0675,
        "shuffled": 10_000, "delta": 1e-6,
    }  # fmt: skip
    assert found["krr_limit"] is None
    assert found["epsilon"][0] == pytest.approx(2.0, abs=0.001)
    single = [found[name]["shuffled"] for name in ("number", "pair", "one_hot_pair")]
    every = [*found["shuffled"], *single]
    assert all(0.999 * 0.0675 < epsilon <= 0.0675 for epsilon in every)
    for name, build in (("local-hash", LocalHash.from_epsilon), ("rappor", best_bloom)):
        mechanism = build(found["epsilon"][found["mechanism"].index(name)])
        reports = 10_000 // mechanism.cohorts
        high = shuffled_epsilon(blanket_of(mechanism), reports, 1e-6).high
        assert high == pytest.approx(0.0675, rel=1e-3)


RELAYS = """\
kafka: {partitions: 2}
collections:
  - {name: plan, mechanism: k-rr, epsilon: EPSILON, size: 16, other: false, window_seconds: 3600,
     grace_seconds: 60, budget: none}
"""


@pytest.mark.all
@pytest.mark.parametrize(
    ("relay", "reports", "honest"),
    [
        ("{}", 1_000_000, 500),
        ("{shuffle_reports: 10000, forged_share: 0.1}", 1_000_000, 9000),
        ("{shuffle_reports: 10000, forged_share: 0.1}", 4000, 1660),
    ],
)
def test_a_plan_among_what_relays_shuffle_agrees_with_check(
    tmp_path: Path, relay: str, reports: int, honest: int
) -> None:
    """Catches a pool of all reports: what `check` states of the planned epsilon is the wanted one."""
    config = tmp_path / "deniable.yaml"
    config.write_text(f"{RELAYS.replace('EPSILON', '1')}relay: {relay}\n")
    line = f"--values 16 --shuffled-epsilon 0.5 --reports {reports} --config {config}"
    planned = run(f"{line} --json")
    assert planned.exit_code == 0, (planned.output, planned.exception)
    found = json.loads(planned.stdout)
    assert found["asked"]["shuffled"] == honest
    config.write_text(f"{RELAYS.replace('EPSILON', repr(found['epsilon'][0]))}relay: {relay}\n")
    checked = json.loads(CliRunner().invoke(check, ["--config", str(config), "--json"]).stdout)
    shuffled = checked["collections"][0]["shuffled_by_relays"]
    if reports == 1_000_000:
        assert shuffled["honest_reports"] == honest
        assert 0.49 < shuffled["shuffled"] <= 0.5
    else:  # `check` states the figure of windows that get shuffle_reports
        assert shuffled["shuffled"] < 0.5
    assert f"among {honest:,}\nhonest ones, which relays shuffle together" in run(line).stdout


@pytest.mark.slow
def test_a_plan_without_a_file_takes_the_defaults_of_relays() -> None:
    line = "--values 100 --shuffled-epsilon 1 --reports 100000 --json"
    planned = run(line)
    assert planned.exit_code == 0, (planned.output, planned.exception)
    found = json.loads(planned.stdout)
    assert found["asked"]["shuffled"] == 500
    high = shuffled_epsilon(blanket_of(KRR.from_epsilon(100, found["epsilon"][0])), 500, 1e-6).high
    assert high == pytest.approx(1, rel=1e-3)


def test_messages_of_relays(tmp_path: Path, pin_messages: PinMessages) -> None:
    """Those that shuffle no certain number."""

    def refusal(section: str) -> str:
        config = tmp_path / "deniable.yaml"
        config.write_text(RELAYS.replace("EPSILON", "1") + section)
        line = f"--values 16 --shuffled-epsilon 0.5 --reports 1000 --config {config}"
        return refusal_of(run(line), 2)

    pin_messages(
        {
            "no relay": lambda: refusal(""),
            "relays that wait for no number": lambda: refusal("relay: {shuffle_reports: 0}\n"),
        }
    )


@pytest.mark.slow
def test_a_plan_for_shuffled_reports_says_against_whom() -> None:
    text = run("--values 16 --shuffled-epsilon 0.1 --shuffled 1000 --reports 10000 --delta 1e-7").stdout
    assert "so that it costs 0.1 at delta 1e-07 among 1,000\nshuffled ones" in text
    assert "Against broker, edge or relay's memory nothing is gained" in text
    assert "at this epsilon" not in text


@pytest.mark.all
def test_each_epsilon_that_was_chosen_is_in_the_text() -> None:
    line = "--values 16 --shuffled-epsilon 0.1 --reports 10000 --second-values 3"
    found, text = json.loads(run(f"{line} --json").stdout), run(line).stdout
    chosen = {"number": "number", "k-rr-pair": "pair", "one-hot-pair": "one_hot_pair"}
    for name, field in chosen.items():
        assert f"\n{name}, epsilon {rounded_up(found[field]['epsilon'])}: " in text


def test_a_standard_error_above_the_whole_is_none() -> None:
    text = run("--values 100 --epsilon 0.1 --reports 10 --second-values 5").stdout
    lines = text.splitlines()
    assert [line.split()[2] for line in lines[1:5]] == ["none"] * 4
    assert lines[-6].startswith("number: the median of evenly spread ones has no std error up to 1 of the")
    assert lines[-4].startswith("k-rr-pair: a rare pair of values has no std error up to 1, detectable none")
    assert lines[-3].endswith("a rare value of the first field has none")
