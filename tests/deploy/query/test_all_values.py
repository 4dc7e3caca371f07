"""`rollup` and `decode` with `--all-values`: the table has the intervals that hold for all values at once."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.query import past_windows
from deniable.deploy.query.decoding.decode import decode
from deniable.deploy.query.rollup import rollup
from deniable.estimators.collection import Collection
from tests.support.messages import PinMessages, refusal_of

START = 1_769_817_600
PERIOD = ("--from", "2026-01-31T00:00Z", "--to", "2026-01-31T00:02Z")
FILE = """\
kafka: {bootstrap_servers: localhost:9092}
collections:
  - {name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], other: false, epsilon: 1, window_seconds: 60,
     grace_seconds: 30, budget: none}
  - {name: host, mechanism: rappor, f: 0.5, p: 0.25, q: 0.75, bits: 16, hashes: 2, cohorts: 8,
     candidates: [AA, B6, "9E"], window_seconds: 60, grace_seconds: 30, budget: none}
"""


@pytest.fixture(autouse=True)
def past(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two windows; each counter has a third of its reports, or half of them less a little."""

    async def join(_: object, __: object, collection: Collection, ___: object) -> Joined:
        shares = np.linspace(0.33, 0.39, collection.cohorts * collection.width)
        counts = (1000 * shares).astype(np.int64).reshape(collection.cohorts, collection.width)
        sizes = np.full(collection.cohorts, 1000) if collection.cohorts > 1 else counts.sum(axis=1)
        reports = dict.fromkeys((START, START + 60), int(sizes.sum()) // 2)
        return Joined(WindowCounts(counts, sizes, 2, 0), reports, [], {}, 0)

    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(FILE)
    Path("words.txt").write_text("AA\nB6\n9E\n")
    monkeypatch.setattr(past_windows.topic_checks, "require_readable", lambda *_: None)
    monkeypatch.setattr(past_windows, "join_windows", join)


def run(*options: str) -> Result:
    return CliRunner().invoke(rollup, [*options, *PERIOD])


def rows_of(ended: Result) -> dict[str, list[str]]:
    """Return the columns after each name."""
    assert ended.exit_code == 0, ended.output
    lines = [line.split() for line in ended.stdout.splitlines()]
    return {line[0]: [each for each in line[1:] if each != "*"] for line in lines if line[0] in "AA B6 9E"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collection", "errors"), [("carrier", ["independent"]), ("host", ["independent", "shared"])]
)
def test_ends_are_those_of_the_record_for_all_values(collection: str, errors: list[str]) -> None:
    """For both errors where clients keep noise; frequencies and standard errors stay."""
    record = json.loads(run(collection, "--json").stdout)
    single, together = run(collection), run(collection, "--all-values")
    head = "reports, 3 values, 95 % intervals that hold for all values at once, * significant"
    assert together.stdout.splitlines()[0].endswith(head)
    assert len(single.stdout.splitlines()) == len(together.stdout.splitlines())
    for place, value in enumerate(record["independent"]["values"]):
        before, after = rows_of(single)[value], rows_of(together)[value]
        assert before[0] == after[0]
        for number, error in enumerate(errors):
            deviation, *ends = after[1 + 3 * number : 4 + 3 * number]
            names = ("low_all", "high_all")
            assert ends == [f"{record[error][name][place]:.6f}" for name in names]
            assert before[1 + 3 * number] == deviation
            assert before[2 + 3 * number : 4 + 3 * number] != ends


def test_decode_has_the_same_table() -> None:
    ended = CliRunner().invoke(decode, ["host", "--candidates", "words.txt", "--all-values", *PERIOD])
    assert rows_of(ended) == rows_of(run("host", "--all-values"))
    assert "3 candidates, 95 % intervals that hold for all values at once" in ended.stdout


def test_messages(pin_messages: PinMessages) -> None:
    """Where there are no such intervals to choose."""
    refusals = {
        "of a former definition": run("carrier", "--all-values", "--former", "deniable.yaml"),
        "for programs": run("carrier", "--all-values", "--json"),
        "of texts that are searched": CliRunner().invoke(decode, ["host", "--grow", "--all-values", *PERIOD]),
    }
    messages = {what: refusal_of(ended, 2) for what, ended in refusals.items()}
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_help_points_to_intervals_for_every_look() -> None:
    text = " ".join(CliRunner().invoke(rollup, ["--help"]).output.split())
    assert "hold for one look; those of deniable changes hold at every look" in text
