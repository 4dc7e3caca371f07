"""`rollup` and `decode` without a broker: what they print of joined windows, and what they refuse."""

import json
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.errors import AnalysisError
from deniable.deploy.query import past_windows, period_options
from deniable.deploy.query.decoding.decode import decode
from deniable.deploy.query.decoding.growing import found_table, printable_text
from deniable.deploy.query.rollup import rollup
from deniable.estimators.collection import Collection
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts
from deniable.estimators.errors import DeniableError
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.deploy.collection_texts import WHOLE
from tests.support.messages import PinMessages, refusal_of

PERIOD = ("--from", "2026-01-31T00:00Z", "--to", "2026-01-31T00:10Z")
START = 1_769_817_600
REPORTS = 9000  # of each cohort and window
FEW_JOINED = "carrier: 7 of 10 windows of 60 s joined, 2026-01-31T00:00:00Z to 2026-01-31T00:10:00Z"
LINES = [f"word-{i}" for i in range(20)] + ["JFK", "LHR"]


class Past:
    """What is joined: three windows, of which one is missing and one incomplete."""

    def __init__(self) -> None:
        self.reports = REPORTS
        self.others: dict[int, int] = {}
        self.foreign = 0
        self.asked: list[Period] = []
        self.excess = 0
        self.is_empty = False

    async def join(self, _: object, __: object, collection: Collection, period: Period) -> Joined:
        self.asked.append(period)
        starts = [START + 60 * i for i in range(10) if i not in (3, 4, 7) and not self.is_empty]
        expected = self._expected(collection) * len(starts) * self.reports
        sizes = np.full(collection.cohorts, self.reports * len(starts))
        counts = WindowCounts(np.round(expected).astype(np.int64) + self.excess, sizes, 7, 2)
        reports = dict.fromkeys(starts, self.reports * collection.cohorts)
        return Joined(counts, reports, [START + 420], self.others, self.foreign)

    def _expected(self, collection: Collection) -> Any:
        """Shares of ones: 70 % of the clients hold JFK, 30 % LHR; in k-RR all are alike."""
        mechanism = collection.mechanism
        if not isinstance(mechanism, Rappor):
            return np.full((mechanism.cohorts, mechanism.width), 1 / mechanism.width)
        held = np.zeros((mechanism.cohorts, mechanism.bits))
        for cohort in range(mechanism.cohorts):
            rows = bloom_rows(["JFK", "LHR"], np.array([cohort, cohort]), mechanism)
            held[cohort] = [0.7, 0.3] @ np.unpackbits(rows, axis=1, bitorder="little")
        return mechanism.p_star + (mechanism.q_star - mechanism.p_star) * held


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Past:
    found = Past()
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(WHOLE)
    Path("words.txt").write_text("\n".join(LINES))
    monkeypatch.setattr(past_windows.topic_checks, "require_readable", lambda *_: None)
    monkeypatch.setattr(past_windows, "join_windows", found.join)
    return found


def run_rollup(*options: str) -> Result:
    return CliRunner().invoke(rollup, list(options))


def run_decode(*options: str, file: str = "words.txt", collection: str = "destination") -> Result:
    return CliRunner().invoke(decode, [collection, "--candidates", file, *options])


def refused(ended: Result) -> tuple[int, str]:
    """Return exit status and output, with what `main` makes of an error that a command lets through."""
    error = ended.exception
    if isinstance(error, DeniableError):
        return error.exit_status, f"Error: {error}\n"
    return ended.exit_code, ended.output


def test_rollup_prints_a_table_and_says_what_was_joined(past: Past) -> None:
    ended = run_rollup("carrier", *PERIOD)
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.startswith("carrier: 7 of 10 windows ")
    lines = ended.stdout.splitlines()
    assert lines[0] == "63000 reports, 3 values, 95 % intervals, * significant"
    assert [line.split()[0] for line in lines[1:]] == ["value", "AA", "B6", "9E"]
    assert lines[2].split()[1] == "0.333333"
    assert past.asked == [Period(START, START + 600)]


def test_days_are_in_the_zone_that_is_asked_for(past: Past) -> None:
    """Whatever the order of the options; a time with a zone keeps it."""
    for options in (
        ("--from", "2026-01-31", "--to", "2026-01-31T00:10", "--tz", "Asia/Tokyo"),
        ("--tz", "UTC", "--from", "2026-01-31T00:00+09:00", "--to", "2026-01-31T00:10+09:00"),
    ):
        assert run_rollup("carrier", *options).exit_code == 0
    assert past.asked == [Period(START - 9 * 3600, START - 9 * 3600 + 600)] * 2
    status, output = refused(run_rollup("carrier", *PERIOD, "--tz", "../Berlin"))
    assert (status, "--tz" in output) == (2, True)


def test_a_density_is_of_a_number(past: Past) -> None:
    status, output = refused(run_rollup("carrier", *PERIOD, "--density"))
    assert (status, "--density" in output) == (2, True)


NUMBER = """\
  - {name: delay, mechanism: number, minimum: 0, maximum: 200, steps: 200, epsilon: 2, window_seconds: 60,
     grace_seconds: 30, budget: none}
"""


def test_rows_of_a_number_are_between_chosen_edges(past: Past) -> None:
    Path("deniable.yaml").write_text(WHOLE + NUMBER)

    def rows(*options: str) -> list[str]:
        ended = run_rollup("delay", *PERIOD, *options)
        assert ended.exit_code == 0, ended.output
        return [line.split("  ")[0].strip() for line in ended.stdout.splitlines() if " to " in line]

    named = rows("--edges", "0,1,2,5,10,20,50,100")
    assert named[:7] == ["0 to 1", "1 to 2", "2 to 5", "5 to 10", "10 to 20", "20 to 50", "50 to 100"]
    assert rows("--edges", "log")[:3] == ["0 to 1", "1 to 2", "2 to 4"]
    record = json.loads(run_rollup("delay", *PERIOD, "--edges", "0,5,200", "--json").stdout)
    assert (record["edges"], record["independent"]["values"]) == ([0, 5, 200], ["0", "5"])
    assert len(record["independent"]["low"]) == 2
    assert past.asked == [Period(START, START + 600)] * 3


def test_messages_of_edges(past: Past, pin_messages: PinMessages) -> None:
    Path("deniable.yaml").write_text(WHOLE + NUMBER)
    wrong = {
        "no numbers": ("delay", "--edges", "0,ten"),
        "between steps": ("delay", "--edges", "0,0.75,100"),
        "of values": ("carrier", "--edges", "0,1"),
        "beside a density": ("delay", "--edges", "0,1", "--density"),
        "beside former files": ("delay", "--edges", "0,1", "--former", "deniable.yaml"),
    }
    messages = {}
    for what, options in wrong.items():
        status, said = refused(run_rollup(*options, *PERIOD))
        assert (status, past.asked) == (2, [])
        messages[what] = said[said.index("Error: ") :]
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_rollup_shows_an_interval_of_the_remainder(past: Past) -> None:
    """Like that of any value, since all are alike."""
    Path("deniable.yaml").write_text(WHOLE.replace(", other: false", "", 1))
    rows = {line.split()[0]: line.split()[1:] for line in run_rollup("carrier", *PERIOD).stdout.splitlines()}
    assert rows["(other)"] == rows["AA"]
    _, error, low, high, _ = rows["(other)"]
    # And half a count at each end: of N reports, 1 / (N (p - q)) together. Figures are printed with 6 digits.
    reports, contrast = 63_000, (math.exp(1.0986) - 1) / (math.exp(1.0986) + 3)
    expected = 2 * 1.959964 * float(error) + 1 / (reports * contrast)
    assert float(high) - float(low) == pytest.approx(expected, rel=1e-3)


def test_rollup_shows_both_errors_where_clients_keep_noise(past: Past) -> None:
    ended = run_rollup("destination", *PERIOD)
    lines = ended.stdout.splitlines()
    assert lines[:3] == [
        "504000 reports, 2 values, 95 % intervals, * significant",
        "left: if every report comes from another client; right: also valid if the same clients report in",
        "every window",
    ]
    assert lines[3].split() == ["value", "frequency", *["std", "error", "low", "high"] * 2]
    jfk = lines[4].split()
    assert (jfk[0], float(jfk[1])) == ("JFK", pytest.approx(0.7, abs=0.05))
    assert float(jfk[6]) >= float(jfk[2])
    assert lines[-1].startswith("other strings: ")


def test_rollup_gives_programs_one_object(past: Past) -> None:
    ended = run_rollup("carrier", *PERIOD, "--json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    record = json.loads(ended.stdout)
    assert record["coverage"] == {
        "from": START,
        "to": START + 600,
        "expected": 10,
        "windows": 7,
        "missing": [[START + 180, START + 300]],
        "incomplete": [[START + 420, START + 480]],
        "passed_over": {},
        "foreign": 0,
    }
    assert record["independent"] == record["shared"]
    assert record["independent"]["values"] == ["AA", "B6", "9E"]


def test_rollup_gives_programs_every_value_of_a_large_domain(past: Past) -> None:
    Path("deniable.yaml").write_text(WHOLE.replace('values: [AA, B6, "9E"], other: false', "size: 3000"))
    record = json.loads(run_rollup("carrier", *PERIOD, "--json").stdout)
    for kind in ("independent", "shared"):
        assert record[kind]["values"] == [str(value) for value in range(3000)]
        assert (record[kind]["omitted"], record[kind]["parts"]) == (0, 1)
        assert record[kind]["other"]["frequency"] == pytest.approx(1 / 3001)


def test_messages_of_windows(past: Past, pin_messages: PinMessages) -> None:
    def shown(others: dict[int, int], foreign: int) -> str:
        past.others, past.foreign = others, foreign
        return run_rollup("carrier", *PERIOD).stderr

    pin_messages(
        {
            "gaps": lambda: shown({}, 0),
            "other parameters and versions": lambda: shown({0xAB: 12}, 3),
            "one of each": lambda: shown({0xAB: 1}, 1),
        }
    )


def test_many_gaps_are_summed_up(past: Past) -> None:
    ended = run_rollup("carrier", "--from", str(START - 36_000), "--to", str(START + 600))
    assert ", and " not in ended.stderr
    spans = [Period(60 * i, 60 * i + 60) for i in range(0, 16, 2)]
    assert past_windows._spans(spans).endswith(
        "1970-01-01T00:08:00Z to 1970-01-01T00:09:00Z, and 3 more spans"
    )


def test_too_few_reports_are_reported_in_both_forms(past: Past) -> None:
    past.reports = 3
    table, record = run_rollup("carrier", *PERIOD), run_rollup("carrier", *PERIOD, "--json")
    assert (table.exit_code, table.stdout, record.exit_code) == (1, "", 1)
    assert isinstance(record.exception, AnalysisError)
    assert str(record.exception).startswith("7 windows of carrier ")
    assert str(table.exception) == str(record.exception)
    assert (table.stderr.splitlines()[0], record.stderr) == (FEW_JOINED, "")
    assert json.loads(record.stdout)["independent"] is None
    past.reports = 1
    few = run_decode(*PERIOD)
    assert (few.exit_code, few.stdout) == (1, "")
    assert " 56 reports" in str(few.exception)


def test_messages_of_too_few_reports(past: Past, pin_messages: PinMessages) -> None:
    """A longer period would not help where the windows are there, under another epsilon, or none is."""

    def refusal(others: dict[int, int], is_empty: bool = False) -> str:
        past.reports, past.others, past.is_empty = 3, others, is_empty
        ended = run_rollup("carrier", *PERIOD)
        assert (ended.exit_code, ended.stdout) == (1, "")
        return f"Error: {ended.exception}"

    pin_messages(
        {
            "few reports": lambda: refusal({}),
            "windows of a former definition": lambda: refusal({0xAB: 12, 0xCD: 1}),
            "no window": lambda: refusal({}, is_empty=True),
        }
    )


def test_decode_finds_new_candidates_in_the_past(past: Past) -> None:
    ended = run_decode(*PERIOD)
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.startswith("destination: 7 of 10 windows ")
    lines = ended.stdout.splitlines()
    assert lines[0] == "504000 reports, 22 candidates, 95 % intervals, * significant"
    assert [line.split()[0] for line in lines[4:6]] == ["JFK", "LHR"]
    assert lines[5].count("*") == 2
    assert all("*" not in line for line in lines[6:])


def test_decode_gives_programs_what_rollup_gives_them(past: Past) -> None:
    record = json.loads(run_decode(*PERIOD, "--json").stdout)
    assert record.keys() == json.loads(run_rollup("destination", *PERIOD, "--json").stdout).keys()
    for kind in (record["independent"], record["shared"]):
        assert (kind["values"], kind["omitted"], kind["reports"]) == (LINES, 0, 504_000)
        assert kind["frequency"][-1] == pytest.approx(0.3, abs=0.01)
    assert (record["collection"], record["coverage"]["windows"], record["overlap"]) == ("destination", 7, 7)


HASHED = """\
  - {name: search, mechanism: local-hash, epsilon: 2, hash_functions: 64, candidates: [a, b, c, ""],
     window_seconds: 60, grace_seconds: 30, budget: none}
"""


def test_candidates_of_local_hash_that_the_file_lacks_are_a_hint(
    past: Past, pin_messages: PinMessages
) -> None:
    """Their reports are taken out only if they are asked for, too. No line can ask for an empty text."""
    Path("deniable.yaml").write_text(WHOLE + HASHED)
    Path("new.txt").write_text("c\nnew\n")
    ended = run_decode(*PERIOD, file="new.txt", collection="search")
    hint = ended.stderr.splitlines()[-1]
    assert ended.exit_code == 0
    assert run_decode(*PERIOD, "--json", file="new.txt", collection="search").stderr == ""
    Path("new.txt").write_text("new\na\nb\nc\n")
    assert "lacks" not in run_decode(*PERIOD, file="new.txt", collection="search").stderr
    assert "lacks" not in run_decode(*PERIOD).stderr
    pin_messages({"two candidates are missing": lambda: hint})


def test_candidates_with_blanks_are_warned_of(past: Past, pin_messages: PinMessages) -> None:
    Path("blank.txt").write_text("JFK \nLHR\n")
    warning = run_decode(*PERIOD, file="blank.txt").stderr.splitlines()[0]
    assert "blank" not in run_decode(*PERIOD).stderr
    pin_messages({"a candidate ends with a blank": lambda: warning})


def test_decode_accepts_only_mechanisms_of_any_text(past: Past) -> None:
    ended = run_decode(*PERIOD, collection="carrier")
    assert (refused(ended)[0], ended.stdout, past.asked) == (2, "", [])


@pytest.mark.slow
def test_messages_of_candidates(past: Past, pin_messages: PinMessages) -> None:
    """They do not show them."""
    contents = {
        "not UTF-8": b"\xff",
        "only empty lines": b"\n\n",
        "a line is repeated": b"secret\n\nb\nsecret\n",
        "more than a million": b"".join(b"%d\n" % i for i in range(1_000_001)),
    }
    messages = {}
    for what, content in contents.items():
        Path("other.txt").write_bytes(content)
        messages[what] = refusal_of(run_decode(*PERIOD, file="other.txt"), 1)
        assert "secret" not in messages[what]
    assert past.asked == []
    pin_messages({what: partial(str, message) for what, message in messages.items()})


PERIODS = {
    "--to is a word": ("--from", "0", "--to", "noon"),
    "six digits": ("--from", "202601"),
    "--from is --to": ("--from", str(START), "--to", str(START)),
    "--from is after --to": ("--from", "2026-12-01T00:00Z", "--to", "2026-11-01T00:00:00Z"),
    "--to is 1970": ("--to", "0"),
    "no whole window": ("--from", str(START + 1), "--to", str(START + 119)),
    "--from beside --last": ("--from", str(START), "--last", "1d"),
    **{f"--last {each}": ("--last", each) for each in ("soon", "0d", "-5d", "1000000d", "1.5h")},
}


def test_messages_of_periods(past: Past, pin_messages: PinMessages) -> None:
    messages = {}
    for what, period in PERIODS.items():
        for ended in (run_rollup("carrier", *period), run_decode(*period)):
            status, said = refused(ended)
            assert (status, ended.stdout, past.asked) == (2, "", [])
            messages.setdefault(what, said[said.index("Error: ") :])
            assert said.endswith(messages[what])
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_help_states_the_default_of_each_command() -> None:
    """`export` takes all without a period, `rollup` and `decode` the last day."""
    pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
    from deniable.deploy.query.export import export

    texts = [
        " ".join(CliRunner().invoke(each, ["--help"]).stdout.split()) for each in (export, rollup, decode)
    ]
    expected = ["[default: all that there is; 1d with --to]", "[default: 1d]", "[default: 1d]"]
    assert [
        text.split("7d, 4w. ")[1][: len(each)] for text, each in zip(texts, expected, strict=True)
    ] == expected


@pytest.mark.parametrize(
    ("options", "seconds"),
    [((), 86_400), (("--from", str(START)), 599), (("--last", "90m"), 5400), (("--last", "2w"), 1_209_600)],
)
def test_without_an_end_it_is_now(
    past: Past, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], seconds: int
) -> None:
    monkeypatch.setattr(period_options.time, "time", lambda: START + 599.9)
    run_rollup("carrier", *options)
    assert past.asked == [Period(START + 599 - seconds, START + 599)]


def test_counts_that_no_estimate_fits_are_reported(past: Past) -> None:
    past.excess = -200_000
    for ended in (run_rollup("carrier", *PERIOD), run_decode(*PERIOD)):
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert isinstance(ended.exception, AnalysisError)
        assert str(ended.exception).startswith("no estimate fits the counts: ")


def test_an_unknown_collection_is_reported(past: Past) -> None:
    for ended in (run_rollup("nothing", *PERIOD), run_decode(*PERIOD, collection="nothing")):
        assert "'nothing'" in str(ended.exception)


TREE = """\
  - {name: tree, mechanism: prefix-tree, epsilon: 4, lengths: [1, 2], alphabet: JFK, window_seconds: 60,
     grace_seconds: 30, budget: none}
"""


def test_a_tree_of_even_counts_finds_nothing_and_says_from_which_share_on(past: Past) -> None:
    Path("deniable.yaml").write_text(WHOLE + TREE)
    ended = CliRunner().invoke(decode, ["tree", "--grow", *PERIOD])
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert re.fullmatch("1[0-9]{5} reports on 2 levels, 0 texts found among 13 tested;", lines[0])
    told = r"texts of the alphabet are found from a share of about 0.00\d\d on"
    assert re.fullmatch(rf"with so many reports, {told}, at the default rate of 5 %", lines[2])
    assert ended.stderr.startswith("tree: 7 of 10 windows ")
    as_json = CliRunner().invoke(decode, ["tree", "--grow", "--alphabet", "abc", *PERIOD, "--json"])
    record = json.loads(as_json.stdout)
    assert (record["found"]["texts"], record["found"]["unexplained"], record["rate"]) == ([], 1.0, 0.05)


def test_a_tree_with_too_few_reports_is_not_grown(past: Past) -> None:
    past.reports = 5
    Path("deniable.yaml").write_text(WHOLE + TREE)
    ended = CliRunner().invoke(decode, ["tree", "--grow", *PERIOD, "--json"])
    assert ended.exit_code == 1
    assert json.loads(ended.stdout.splitlines()[0])["found"] is None
    assert "minimum_reports" in str(ended.exception)


@pytest.mark.slow
def test_messages_of_growing(past: Past, pin_messages: PinMessages) -> None:
    Path("deniable.yaml").write_text(WHOLE + TREE)
    lines = {
        "candidates beside --grow": "tree --grow --candidates words.txt",
        "a rate without --grow": "tree --candidates words.txt --rate 0.1",
        "an alphabet without --grow": "tree --candidates words.txt --alphabet abc",
        "rate is 1": "tree --grow --rate 1",
        "a collection of RAPPOR": "destination --grow",
        "candidates with the same beginning": "tree --candidates words.txt",
    }
    messages = {}
    for what, line in lines.items():
        status, said = refused(CliRunner().invoke(decode, [*line.split(), *PERIOD]))
        assert status == 2
        messages[what] = said[said.index("Error: ") :]
    pin_messages({what: partial(str, message) for what, message in messages.items()})
    assert CliRunner().invoke(decode, ["tree", "--grow", "--alphabet", "", *PERIOD]).exit_code == 0


def test_found_texts_whose_interval_reaches_0_are_marked() -> None:
    """The second one passed its test so narrowly that its share may be 0."""
    column = np.array
    found = FoundTexts(
        [b"news", b"weathp"],
        column([True, False]),
        column([0.08, 0.0]),
        column([0.001, 0.0008]),
        column([0.078, 0.0]),
        column([0.082, 0.0036]),
        (0.9, 0.005),
        column([3000, 3000]),
        50,
        0.05,
    )
    lines = found_table(found, PrefixTree.from_epsilon((2, 6), 4.0)).splitlines()
    assert lines[2:5] == [
        "0.080000 +- 0.001000  [0.078000, 0.082000]   news",
        "0.000000 +- 0.000800  [0.000000, 0.003600] ? weathp...",
        "? 1 of them may be false: they passed the test so narrowly that their shares may be 0",
    ]
    assert lines[1] == "of those found, at most 5 % are expected to be false; 95 % intervals"


@pytest.mark.parametrize(("rate", "said"), [(0.999999999, "99.9999999 %"), (1e-300, "1e-298 %")])
def test_a_rate_next_to_its_ends_is_not_rounded_to_them(rate: float, said: str) -> None:
    none = np.zeros(0)
    reports = np.array([3000, 3000])
    found = FoundTexts([], none.astype(bool), none, none, none, none, (1.0, 0.0), reports, 50, rate)
    lines = found_table(found, PrefixTree.from_epsilon((2, 6), 4.0)).splitlines()
    assert lines[1].startswith(f"of those found, at most {said} are expected")


def test_texts_with_a_cut_character_are_in_quotes_with_their_bytes() -> None:
    shown = {
        b"news": "news",
        b"weatp\xe8": r"'weatp\xe8'",
        b"whhh\x10\xef": r"'whhh\x10\xef'",
        b"a\\xe8\xe8": r"'a\\xe8\xe8'",
        b"it's\xe6": r"'it\'s\xe6'",
        b" a": "' a'",
        "née".encode() + b"\xe6\x97": r"'née\xe6\x97'",
    }
    assert {each: printable_text(each) for each in shown} == shown
