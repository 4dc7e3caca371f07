"""What an exit status says: 2 for a command line that is wrong, 1 for one that could not be done.

A command line is wrong if an option, value, file or collection that it names does not exist, is out of range,
or does not fit another one or the collection file. That is found before anything is read but that file. What
other files and the collection file contain, and what Kafka holds or does not answer, is status 1.
"""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.deploy.cli.conftest import Run
from tests.support.messages import PinMessages

MORE = """\
  - {name: air, mechanism: number, minimum: 0, maximum: 10, steps: 16, epsilon: 1, window_seconds: 30,
     grace_seconds: 5, budget: none}
  - {name: tree, mechanism: prefix-tree, epsilon: 2, lengths: [1, 2, 3], window_seconds: 30, grace_seconds: 5,
     budget: none}
  - {name: pair, mechanism: k-rr-pair, epsilon: 2, window_seconds: 30, grace_seconds: 5, budget: none,
     fields: [{name: a, values: [x, y]}, {name: b, values: [u, v]}]}
"""
COLLECTION = [
    "produce {} --input lines.csv --field carrier --no-clients",
    "canary {} --reports 100",
    "watch {}",
    "rollup {}",
    "decode {} --candidates lines.csv",
    "compare {} --between 2026-01 --and 2026-02",
    "export {} --output out",
    "changes {}",
    "detect {}",
]
WITH_FILE = [
    "check",
    "dev",
    "topics create",
    "topics check",
    "doctor",
    "spent",
    "edge --listen 127.0.0.1:8330",
    "aggregate",
    "relay",
    "replay",
    "retire carrier",
    "inspect reports",
    "demo --once",
    *(line.format("carrier") for line in COLLECTION),
]
PERIODS = ["rollup carrier", "decode destination --candidates lines.csv", "changes carrier", "detect carrier"]
WRONG_PERIODS = [
    "--last 0d",
    "--last 7d --from 2026-01-01",
    "--from noon",
    "--from 2999-01-01",
    "--from 2026-01-02T00:00Z --to 2026-01-01T00:00Z",
    "--from 1000000001 --to 1000000002",
]
#: Refused with messages that those of REFUSED, or tests of the command, pin.
WRONG = [
    *(line.format("nosuch") for line in COLLECTION),
    *(f"{line} --config none.yaml" for line in WITH_FILE),
    *(f"{line} --config ." for line in WITH_FILE),
    *(f"{line} --nosuch" for line in WITH_FILE),
    *(f"{line} {period}" for line in [*PERIODS, "export carrier --output out"] for period in WRONG_PERIODS),
    *(
        f"{line} --bootstrap-servers here"
        for line in WITH_FILE
        if line.split()[0] not in ("check", "dev", "spent")
    ),
    "produce carrier --input lines.csv --field carrier",
    "edge --listen 127.0.0.1:8330",
    "detect carrier --from 0",
    "dev --data-dir lines.csv",
    "produce carrier --field x --no-clients --data-dir lines.csv",
    "produce carrier --input none.csv --field carrier --no-clients",
    "estimate k-rr-pair --epsilon 1 --input none.txt",
    "compare carrier --between 2026-01 --and 1000000001/1000000002",
    "topics check --as nobody",
    *(f"export carrier --output {each}" for each in ("S3://b/x", "file:///x", "s3:", "s3:/b", "-")),
    "plan --values 10 --reports 100 --epsilon 99",
    "account --mechanism k-rr",
    "account --mechanism k-rr --k 3 --epsilon 1 --reports 1 --budget 2",
    "account --mechanism k-rr --k 3 --epsilon 1 --reports 1 --f 0.3",
    "estimate k-rr --epsilon 1 --counts 1,x",
]
REFUSED = [
    "watch nosuch",
    "check --config none.yaml",
    "check --config .",
    "check --nosuch",
    *(f"rollup carrier {period}" for period in WRONG_PERIODS),
    "watch carrier --bootstrap-servers here",
    "produc x",
    "watch",
    "topics crate",
    "topics check --as reder",
    "topics create --partitions 0",
    "ready --adress x",
    "aggregate --web-port 65536",
    "broker --port -1",
    "broker --data-dir lines.csv",
    "replay --wait -1",
    "inspect reports --tail 0",
    "produce carrier --no-clients",
    "produce carrier --field x --clients y --no-clients",
    "produce carrier --field x --no-clients --format json",
    "produce carrier --field x --no-clients --format xml",
    "produce carrier --field x --no-clients --input .",
    "produce carrier --field x --no-clients --metrics-port -1",
    "produce carrier --field x --no-clients --follow --input /dev/null",
    "produce several --field x --no-clients --input lines.csv",
    "nosuch",
    "dev --web-port 8330 --edge-port 8330 --config uploads.yaml",
    "demo --once --browser",
    "broker --port x",
    "plan --values 1 --reports 100 --epsilon 1",
    "plan --values 10 --reports 100 --epsilon 1 --delta 0.1",
    "plan --values 10 --reports 100 --epsilon 1 --plot x.gif",
    "account --mechanism k-rr --k 1 --epsilon 1 --reports 1",
    "topics create --producer x",
    "topics create --acls --edge x",
    "produce carrier --input lines.csv --field carrier --second-field x --no-clients",
    "produce pair --input lines.csv --field carrier --no-clients",
    "canary carrier --reports 100",
    "edge",
    "relay",
    "aggregate --otlp here",
    "aggregate --page-host 'a b'",
    "ready --address here",
    "replay --rebuild --uploads",
    "replay --uploads",
    "rollup carrier --former none.yaml",
    "decode destination",
    "decode destination --candidates none.txt",
    "decode destination --candidates .",
    "decode destination --candidates lines.csv --rate 0.1",
    "decode destination --grow",
    "decode carrier --candidates lines.csv",
    "decode tree --grow --rate 2",
    "compare carrier --between 2026-01",
    "compare carrier --between 1767225600/1767312000 --and 1767225600/1767312000",
    "compare carrier --between 2026-13 --and 2026-01",
    "compare carrier --between 2026-01 --and 2026-02 --rate nan",
    "compare air --between 2026-01 --and 2026-02",
    "export carrier",
    "export carrier --output lines.csv",
    "export carrier --output gs://b/x",
    "export carrier --output s3://b/../x",
    "export carrier --output out --format xls",
    "export carrier --output out --follow --last 1d",
    "changes tree --last 4w",
    "detect carrier --reports 5",
    "inspect nosuch",
    "inspect reports --offset 1 --tail 2",
    "inspect reports --schema",
    "estimate k-rr --epsilon 1",
    "estimate k-rr --epsilon 1 --counts 1,2 --iterations 5",
    "estimate k-rr --epsilon 1 --input none.txt",
    "estimate rappor --params none --counts none --map none",
]
NOT_DONE = [
    "check --config broken.yaml",
    "init .",
    "ready --address 127.0.0.1:9",
    "spent --data-dir none",
    "produce several --format jsonl --input empty.txt --field x --no-clients",
    "rollup carrier",
    "decode destination --candidates empty.txt",
    "estimate k-rr --epsilon 1 --input lines.csv",
    "estimate k-rr-pair --epsilon 1 --input lines.csv",
    "estimate rappor --params lines.csv --counts lines.csv --map lines.csv",
]


@pytest.fixture(autouse=True)
def files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the folder in which commands run; nothing answers at the Kafka that they name."""
    whole = Path("deniable.yaml").read_text()
    Path("deniable.yaml").write_text(whole + MORE)
    Path("uploads.yaml").write_text(f"edge: {{}}\nrelay: {{}}\n{whole}")
    Path("broken.yaml").write_text("collections: [\n")
    Path("empty.txt").touch()
    monkeypatch.setenv("DENIABLE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:9")


def refusal(run: Run, line: str, status: int) -> str:
    """Return the error message without usage, present time and digits that depend on the processor."""
    ended = run(line)
    assert (ended.code, ended.out) == (status, ""), line
    message = re.sub(r"now \(\S+\)", "now (NOW)", ended.err[ended.err.index("Error: ") :])
    return re.sub(r"(\d\.\d{6})\d{6,}", r"\1…", message)


def test_wrong_command_line_is_status_2(run: Run) -> None:
    for line in WRONG:
        assert refusal(run, line, 2)


def test_what_could_not_be_done_is_status_1(run: Run) -> None:
    with_file = [f"{line} --config broken.yaml" for line in WITH_FILE]
    for line in (*with_file, "rollup carrier --former broken.yaml", "export carrier --output lines.csv/x"):
        assert refusal(run, line, 1)


@pytest.mark.slow
def test_messages_of_wrong_command_lines(run: Run, pin_messages: PinMessages) -> None:
    """Each with status 2."""
    messages = {f"deniable {line}": refusal(run, line, 2) for line in REFUSED}
    pin_messages({line: partial(str, message) for line, message in messages.items()})


def test_messages_of_what_could_not_be_done(run: Run, pin_messages: PinMessages) -> None:
    """Each with status 1."""
    messages = {f"deniable {line}": refusal(run, line, 1) for line in NOT_DONE}
    pin_messages({line: partial(str, message) for line, message in messages.items()})


@pytest.mark.slow
def test_a_stop_that_takes_too_long_ends_and_says_so() -> None:
    program = (
        "import time; from deniable.deploy.cli.signals import stop_deadline; "
        "stop_deadline(0.1, 'the worker').start(); time.sleep(60)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("the worker did not stop within 0.1 s; ")
    assert ended.stderr.count("\n") == 1
