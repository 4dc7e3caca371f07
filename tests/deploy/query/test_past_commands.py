"""`rollup` and `decode` without a broker: what they print of joined windows, and what they refuse."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from aggregator.history.periods import Period
from aggregator.history.window_reader import Joined
from aggregator.records.window_counts import WindowCounts
from deploy.query import past_windows, period_options
from deploy.query.decoding.decode import decode
from deploy.query.decoding.growing import found_table, printable_text
from deploy.query.rollup import rollup
from estimators.collection import Collection
from estimators.decoding.hashed.growth.grow import FoundTexts
from estimators.errors import DeniableError
from estimators.mechanisms.hashing.bloom_filter import bloom_rows
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.rappor import Rappor
from tests.support.deploy.collection_texts import WHOLE

PERIOD = ("--from", "2026-01-31T00:00Z", "--to", "2026-01-31T00:10Z")
START = 1_769_817_600
REPORTS = 9000  # of each cohort and window
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
    monkeypatch.setattr(past_windows.topic_setup, "require_readable", lambda *_: None)
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


MESSAGES = [
    "{}: 7 of 10 windows of 60 s joined, 2026-01-31T00:00:00Z to 2026-01-31T00:10:00Z",
    "missing (no reports, not final yet, lost, or older than the topic's retention): 2026-01-31T00:03:00Z to "
    "2026-01-31T00:05:00Z",
    "incomplete (their first pages are deleted): 2026-01-31T00:07:00Z to 2026-01-31T00:08:00Z",
]


def test_rollup_prints_a_table_and_says_what_was_joined(past: Past) -> None:
    ended = run_rollup("carrier", *PERIOD)
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.splitlines() == [MESSAGES[0].format("carrier"), *MESSAGES[1:]]
    lines = ended.stdout.splitlines()
    assert lines[0] == "63000 reports, 3 values, 95 % intervals, * significant"
    assert [line.split()[0] for line in lines[1:]] == ["value", "AA", "B6", "9E"]
    assert lines[2].split()[1] == "0.333333"
    assert past.asked == [Period(START, START + 600)]


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


def test_skipped_windows_are_reported(past: Past) -> None:
    past.others, past.foreign = {0xAB: 12}, 3
    said = run_rollup("carrier", *PERIOD).stderr.splitlines()
    assert said[1] == (
        "missing (no reports, not final yet, lost, older than the topic's retention, or only under other "
        "parameters): 2026-01-31T00:03:00Z to 2026-01-31T00:05:00Z"
    )
    assert said[3:] == [
        "12 windows with other parameters (fingerprint 00000000000000ab) skipped: their counts cannot "
        "be added; deniable rollup --former FILE joins their estimates",
        "skipped 3 records of the windows topic, not of this version",
    ]


def test_one_skipped_window_or_record_is_no_plural(past: Past) -> None:
    past.others, past.foreign = {0xAB: 1}, 1
    skipped, foreign = run_rollup("carrier", *PERIOD).stderr.splitlines()[3:]
    assert skipped.startswith("1 window with other parameters (fingerprint 00000000000000ab) skipped: ")
    assert foreign == "skipped 1 record of the windows topic, not of this version"


def test_many_gaps_are_summed_up(past: Past) -> None:
    ended = run_rollup("carrier", "--from", str(START - 36_000), "--to", str(START + 600))
    assert ", and " not in ended.stderr
    spans = [Period(60 * i, 60 * i + 60) for i in range(0, 16, 2)]
    assert past_windows._spans(spans).endswith(
        "1970-01-01T00:08:00Z to 1970-01-01T00:09:00Z, and 3 more spans"
    )


def test_too_few_reports_are_reported_in_both_forms(past: Past) -> None:
    past.reports = 3
    message = (
        "Error: 7 windows of carrier were joined, with 21 reports, fewer than minimum_reports "
        "= 100; give a longer period\n"
    )
    table, record = run_rollup("carrier", *PERIOD), run_rollup("carrier", *PERIOD, "--json")
    assert (table.exit_code, table.stdout, record.exit_code, record.stderr) == (1, "", 1, message)
    assert table.stderr.endswith(message)
    assert json.loads(record.stdout)["independent"] is None
    past.reports = 1
    few = run_decode(*PERIOD)
    assert (few.exit_code, few.stdout) == (1, "")
    assert few.stderr.endswith("with 56 reports, fewer than minimum_reports = 100; give a longer period\n")


def test_remedy_for_windows_of_a_former_definition_is_its_file(past: Past) -> None:
    """A longer period would not help: the windows are there, under another epsilon."""
    past.reports, past.others = 3, {0xAB: 12, 0xCD: 1}
    assert run_rollup("carrier", *PERIOD).stderr.endswith(
        "with 21 reports, fewer than minimum_reports = 100; 13 windows are of other parameters: give the "
        "collection file that they were counted under, or a period with more windows of this one\n"
    )


def test_decode_finds_new_candidates_in_the_past(past: Past) -> None:
    ended = run_decode(*PERIOD)
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.splitlines()[0] == MESSAGES[0].format("destination")
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


def test_candidates_of_local_hash_that_the_file_lacks_are_a_hint(past: Past) -> None:
    """Their reports are taken out only if they are asked for, too. No line can ask for an empty text."""
    Path("deniable.yaml").write_text(WHOLE + HASHED)
    Path("new.txt").write_text("c\nnew\n")
    hint = "new.txt lacks 2 candidates of search: with all of them in the file, errors are smaller"
    ended = run_decode(*PERIOD, file="new.txt", collection="search")
    assert (ended.exit_code, ended.stderr.splitlines()[-1]) == (0, hint)
    assert run_decode(*PERIOD, "--json", file="new.txt", collection="search").stderr == ""
    Path("new.txt").write_text("new\na\nb\nc\n")
    assert "smaller" not in run_decode(*PERIOD, file="new.txt", collection="search").stderr
    assert "smaller" not in run_decode(*PERIOD).stderr


def test_candidates_with_blanks_are_warned_of(past: Past) -> None:
    Path("blank.txt").write_text("JFK \nLHR\n")
    assert run_decode(*PERIOD, file="blank.txt").stderr.splitlines()[0] == (
        "warning: --candidates blank.txt: 1 line begins or ends with blanks, which are part of the strings"
    )
    assert "blanks" not in run_decode(*PERIOD).stderr


def test_decode_accepts_only_mechanisms_of_any_text(past: Past) -> None:
    ended = run_decode(*PERIOD, collection="carrier")
    status, said = refused(ended)
    assert (status, ended.stdout, past.asked) == (2, "", [])
    assert said == (
        "Error: decode needs a collection with mechanism rappor, local-hash, local-hash-longitudinal or "
        "prefix-tree, got carrier with k-rr, whose values cannot change later; use rollup\n"
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xff", "must be text in UTF-8, byte 0 is not"),
        (b"\n\n", "must have 1 to 1000000 lines, got 0"),
        (
            b"secret\n\nb\nsecret\n",
            "must have distinct lines, line 4 repeats line 1; sort -u keeps one of each",
        ),
        (b"".join(b"%d\n" % i for i in range(1_000_001)), "must have 1 to 1000000 lines, got 1000001"),
    ],
    ids=["bytes", "empty", "twice", "many"],
)
def test_unfit_file_of_candidates_is_refused_without_its_content(
    past: Past, content: bytes, expected: str
) -> None:
    Path("other.txt").write_bytes(content)
    ended = run_decode(*PERIOD, file="other.txt")
    assert (ended.exit_code, ended.stdout, past.asked) == (1, "", [])
    assert re.fullmatch(rf"Error: --candidates other.txt:? {re.escape(expected)}\n", ended.stderr)
    assert "secret" not in ended.output


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        (("--from", "noon"), "Error: --from must be whole seconds from 1970 to 9999: ISO 8601, such as"),
        (("--from", "0", "--to", "noon"), "Error: --to must be whole seconds"),
        (("--from", "202601"), "Error: --from must be whole seconds"),
        (
            ("--from", str(START), "--to", str(START)),
            f"Error: --from must be before --to {START} (2026-01-31T00:00:00Z), got {START} (2026-",
        ),
        (
            ("--from", "2026-12-01T00:00Z", "--to", "2026-11-01T00:00:00Z"),
            "Error: --from must be before --to 2026-11-01T00:00:00Z, got 2026-12-01T00:00Z "
            "(2026-12-01T00:00:00Z)\n",
        ),
        (("--from", "9000-01-01T00:00:00Z"), "Error: --from must be before now (20"),
        (("--to", "0"), "Error: --to must be after the beginning of 1970, got 0 (1970-01-01T00:00:00Z)\n"),
        (
            ("--from", str(START + 1), "--to", str(START + 119)),
            "Error: the period must hold at least 1 whole window of 60 s, got 2026-01-31T00:00:01Z to ",
        ),
        (("--from", str(START), "--last", "1d"), "Error: give either --from or --last"),
        (("--last", "soon"), "with m, h, d or w, such as 90m, 24h, 7d, 4w, got 'soon'"),
        *(
            (("--last", each), "must be a whole number from 1 to 999999 with m, h, d or w, such as ")
            for each in ("0d", "-5d", "1000000d", "1.5h")
        ),
    ],
)
def test_a_bad_period_is_wrong_usage(past: Past, period: tuple[str, ...], expected: str) -> None:
    for ended in (run_rollup("carrier", *period), run_decode(*period)):
        status, said = refused(ended)
        assert (status, ended.stdout, past.asked) == (2, "", [])
        assert expected in said


def test_help_states_the_default_of_each_command() -> None:
    """`export` takes all without a period, `rollup` and `decode` the last day."""
    pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
    from deploy.query.export import export

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
        assert ended.stderr.startswith("Error: no estimate fits the counts: ")


def test_an_unknown_collection_is_reported(past: Past) -> None:
    for ended in (run_rollup("nothing", *PERIOD), run_decode(*PERIOD, collection="nothing")):
        assert "there is no collection 'nothing'" in str(ended.exception)


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
    assert ended.stderr.splitlines()[0] == MESSAGES[0].format("tree")
    as_json = CliRunner().invoke(decode, ["tree", "--grow", "--alphabet", "abc", *PERIOD, "--json"])
    record = json.loads(as_json.stdout)
    assert (record["found"]["texts"], record["found"]["unexplained"], record["rate"]) == ([], 1.0, 0.05)


def test_a_tree_with_too_few_reports_is_not_grown(past: Past) -> None:
    past.reports = 5
    Path("deniable.yaml").write_text(WHOLE + TREE)
    ended = CliRunner().invoke(decode, ["tree", "--grow", *PERIOD, "--json"])
    assert ended.exit_code == 1
    assert json.loads(ended.stdout.splitlines()[0])["found"] is None
    assert "fewer than minimum_reports" in ended.stderr


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["tree"], 2, "give either --candidates FILE or --grow"),
        (["tree", "--grow", "--candidates", "words.txt"], 2, "give either --candidates FILE or --grow"),
        (["tree", "--candidates", "words.txt", "--rate", "0.1"], 2, "--alphabet and --rate need --grow"),
        (["tree", "--candidates", "words.txt", "--alphabet", "abc"], 2, "--alphabet and --rate need --grow"),
        (["tree", "--grow", "--rate", "1"], 2, "--rate"),
        (["tree", "--grow", "--alphabet", ""], 0, ""),
        (
            ["destination", "--grow"],
            2,
            "--grow needs a collection with mechanism prefix-tree, got dest",
        ),
        (["carrier", "--candidates", "words.txt"], 2, "local-hash-longitudinal or prefix-tree, got carrier"),
        (["tree", "--candidates", "words.txt"], 2, "candidates must differ in their first 2 bytes"),
    ],
)
def test_what_cannot_be_grown_is_refused(past: Past, options: list[str], status: int, message: str) -> None:
    Path("deniable.yaml").write_text(WHOLE + TREE)
    ended = CliRunner().invoke(decode, [*options, *PERIOD])
    assert refused(ended)[0] == status, ended.output
    assert message in refused(ended)[1]


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


def test_period_without_windows_is_not_to_be_longer(past: Past) -> None:
    past.is_empty = True
    assert run_rollup("carrier", *PERIOD).stderr.endswith(
        "give a period of which there are final windows that the topic or the files still keep\n"
    )
