"""A prefix tree on a real broker: from text to the frequent strings of a past period, without candidates."""

import json
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import deniable
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

COLLECTION = """\
  - {name: search, mechanism: prefix-tree, epsilon: 4.0, lengths: [2, 3, 4, 5, 6], candidates: [coffee],
     window_seconds: 2, grace_seconds: 10, minimum_reports: 1000, budget: none, reports_per_window: 1}
"""
REPORTS = 60_000
SETTLE_SECONDS = 120
#: Texts by their tenths of all reports; the last tenth are different ones.
TENTHS = ["coffee", "coffee", "coffee", "maté", "maté", "maté", "milk tea", "milk tea", "tea"]


def text_of(number: int) -> str:
    return TENTHS[number % 10] if number % 10 < 9 else f"rare {number}"


@pytest.mark.nightly
def test_frequent_strings_of_a_past_period_are_found(broker: str, tmp_path: Path) -> None:
    """Shares of .3, .3, .2 and .1 within 6 stated standard errors; "rare" is the beginning of the rest."""
    deployment = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    file = tmp_path / "deniable.yaml"
    file.write_text(file.read_text() + COLLECTION)
    checked = deployment.run("check")
    assert "search: a prefix tree with levels of 2 3 4 5 6 bytes, 1236 functions into 53" in checked.stdout
    deployment.create_topics()
    lines = [json.dumps({"q": text_of(each), "user": f"user-{each}"}) for each in range(REPORTS)]
    start = int(time.time())
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        options = ["--format", "jsonl", "--field", "q", "--clients=user"]
        sent = deployment.run("produce", "search", *options, given="\n".join(lines).encode())
        assert (sent.returncode, sent.stdout) == (0, ""), sent.stderr
        records: list[dict[str, Any]] = []

        def all_final() -> bool:
            period = ["--from", str(start - 2), "--to", str(int(time.time()) // 2 * 2 + 2)]
            grown = deployment.run("decode", "search", "--grow", *period, "--json")
            if grown.returncode or (record := json.loads(grown.stdout))["reports"] < REPORTS:
                return False
            records.append(record)
            return bool(record["reports"] == REPORTS)

        assert wait_until(all_final, SETTLE_SECONDS), deployment.output("worker.log")
        period = ["--from", str(start - 2), "--to", str(int(time.time()) // 2 * 2 + 2)]
        pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
        table = deniable.grow(file, collection="search", start=int(period[1]), end=int(period[3]))
        rolled = json.loads(deployment.run("rollup", "search", *period, "--json").stdout)["independent"]
    found = records[-1]["found"]
    for name in ("frequency", "low", "high", "std_error", "significant", "whole"):
        assert table.arrow[name].to_pylist() == found[name]
    assert table.arrow["value"].to_pylist() == found["texts"]
    assert table.about["found"]["unexplained"] == found["unexplained"]
    assert table.about["reports"] == REPORTS
    truth = {"coffee": 0.3, "maté": 0.3, "milk t": 0.2, "tea": 0.1}
    shares = dict(zip(found["texts"], zip(found["frequency"], found["std_error"], strict=True), strict=True))
    assert truth.keys() <= shares.keys()
    for text, share in truth.items():
        frequency, std_error = shares[text]
        assert abs(frequency - share) < 6 * std_error, text
        assert std_error < 0.02
    # The others share 5 bytes and have a digit for the sixth. Of about 14 finds, 5 % are expected to be
    # false: more than 8 with a probability below 1e-6.
    assert len([each for each in shares.keys() - truth.keys() if each[:5] != "rare "]) <= 8
    whole = dict(zip(found["texts"], found["whole"], strict=True))
    assert [whole[text] for text in truth] == [False, True, False, True]
    assert len(found["level_reports"]) == 5
    assert sum(found["level_reports"]) == REPORTS
    # What is listed is estimated as ever, from the last level.
    assert rolled["values"] == ["coffee"]
    assert abs(rolled["frequency"][0] - 0.3) < 6 * rolled["std_error"][0]
