"""`estimate rappor` reads google/rappor's files and prints one object, or a table."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.deploy.offline.estimate_rappor import rappor_command
from deniable.deploy.offline.estimate_table import record_of, table
from deniable.estimators.frequency.estimate import Estimate, Misfit
from tests.support.messages import PinMessages, refusal_of
from tests.support.paths import VECTORS

PARAMS = "k,h,m,p,q,f\n16,2,4,0.5,0.75,0.5\n"
MAP = "apple,5,1,26,26,38,34,63,62\nbanana,12,14,28,24,37,34,62,49\nnone\ncarrot,4,12,25,21,48,38,61,54\n"
EXPECTED = VECTORS / "rappor_mle.json"


def run(folder: Path, *options: str, **changed: str | bytes) -> Result:
    """Runs the command on three files, of which some may be changed."""
    case = json.loads(EXPECTED.read_text())["cases"][0]
    rows = [[size, *bits] for size, bits in zip(case["cohort_sizes"], case["bit_counts"], strict=True)]
    counts = "\n".join(",".join(map(str, row)) for row in rows)
    files = {"params": PARAMS, "counts": counts, "map": MAP} | changed
    arguments = list(options)
    for name, content in files.items():
        path = folder / f"{name}.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        arguments += [f"--{name}", str(path)]
    return CliRunner().invoke(rappor_command, arguments)


def test_json_has_published_maximum_in_map_order(tmp_path: Path) -> None:
    """Without a background it is the case of the vectors; a candidate without bits has a null error."""
    result = run(tmp_path, "--json", "--no-background")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    case = json.loads(EXPECTED.read_text())["cases"][0]
    assert record["candidate"] == ["apple", "banana", "none", "carrot"]
    known = [record["frequency"][place] for place in (0, 1, 3)]
    assert known == pytest.approx(case["mle"], abs=2e-4)
    assert record["std_error"][2] is None
    assert all(record["std_error"][place] > 0 for place in (0, 1, 3))
    assert record["significant"][0] is True
    assert record["other"] is None
    assert record["N"] == sum(case["cohort_sizes"])
    columns = ("candidate", "frequency", "std_error", "low", "high", "significant")
    assert {len(record[name]) for name in columns} == {4}


def test_few_cohorts_withhold_the_error_of_other_and_discoveries(tmp_path: Path) -> None:
    record = json.loads(run(tmp_path, "--json").stdout)
    assert 0 <= record["other"] <= 1
    assert record["other_std_error"] is None
    assert not any(record["significant"])


def test_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    marked = run(tmp_path, "--json", params="\ufeff" + PARAMS, map="\ufeff" + MAP)
    assert marked.stdout == run(tmp_path, "--json").stdout


def test_the_table_shows_the_most_frequent_first(tmp_path: Path) -> None:
    lines = run(tmp_path).stdout.splitlines()
    assert lines[0].startswith("20000 reports, 4 candidates")
    assert lines[2].startswith("apple")
    assert lines[-1].startswith("other strings: ")


def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    result = run(tmp_path, map="apple\x1b[2J,5\n")
    assert "\x1b" not in result.stdout
    assert result.stdout.splitlines()[2].startswith(r"'apple\x1b[2J'")


def test_the_table_ends_after_50_candidates(tmp_path: Path) -> None:
    crowd = "".join(f"word-{i},{i % 64 + 1}\n" for i in range(60))
    lines = run(tmp_path, map=crowd).stdout.splitlines()
    assert lines[53:-1] == [line for line in lines if "unlisted" in line or "incomplete" in line]
    assert lines[52] == "and 10 more, of smaller shares; --json shows all"


def test_other_includes_unchosen_candidates(tmp_path: Path) -> None:
    """60 candidates on 64 bits are more than are decoded together: some are screened out."""
    crowd = "".join(f"word-{i},{i % 64 + 1}\n" for i in range(60))
    chosen = json.loads(run(tmp_path, "--json", map=crowd).stdout)["diagnostics"]["chosen"]
    assert 0 <= chosen < 60
    expected = f"other strings, and {60 - int(chosen)} candidates not chosen: "
    assert run(tmp_path, map=crowd).stdout.splitlines()[-1].startswith(expected)
    assert "chosen" not in run(tmp_path).stdout


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    """Each is one line, with the file's name."""
    changes: dict[str, dict[str, str | bytes]] = {
        "wrong params": {"params": "k,h,m,p,q,f\n16,2,4,0.5,1.5,0.5"},
        "wrong counts": {"counts": "5"},
        "a wrong map": {"map": "apple,65"},
        "a map that is not UTF-8": {"map": b"apple\xff,5\n"},
    }
    messages = {what: refusal_of(run(tmp_path, **changed), 1) for what, changed in changes.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_unexplained_bits_are_named() -> None:
    """Of a list that lacks strings: table and JSON say so; of a complete one, they do not."""
    result = Estimate(
        estimator="mle",
        reports=100,
        frequency=np.array([0.5, 0.25]),
        std_error=np.array([0.1, np.inf]),
        low=np.array([0.3, 0.0]),
        high=np.array([0.7, 1.0]),
        significant=np.array([True, False]),
        diagnostics={"chi_square_ratio": 3.8, "chi_square_limit": 1.27},
        misfit=Misfit(np.array([0.05, 0.2]), np.array([False, True]), np.eye(2, 3, dtype=bool)),
    )
    shown = table(["apple", "fig"], result)
    assert "the list is incomplete: reports have bits that no listed string explains (chi-square" in shown
    assert "(chi-square ratio 3.80, above 1.27)\n" in shown
    assert "2 bits that unlisted strings set, as cohort/bit from 0: 0/0 1/1" in shown
    assert "? 1 candidate shares bits with unlisted strings: its error is unknown" in shown
    assert shown.splitlines()[3].endswith("?")
    record = record_of(["apple", "fig"], result)
    assert record["unreliable"] == [False, True]
    assert record["unexplained_bits"] == [{"cohort": 0, "bit": 0}, {"cohort": 1, "bit": 1}]
    complete = replace(result, diagnostics={"chi_square_ratio": 1.0, "chi_square_limit": 1.27}, misfit=None)
    assert "bits" not in table(["apple", "fig"], complete)


def test_counts_that_contradict_the_parameters_name_those_of_the_file(tmp_path: Path) -> None:
    all_ones = "\n".join([",".join(["5000"] * 17)] * 4)
    (said,) = [each for each in run(tmp_path, counts=all_ones).stdout.splitlines() if "contradict" in each]
    assert f"check k, h, p, q and f in {tmp_path / 'params.csv'}, and who reports" in said
