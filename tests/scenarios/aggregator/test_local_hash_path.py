"""Local hashing from text to estimate on a real broker, and other strings found in its past afterwards."""

import json
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

COLLECTION = """\
  - {name: search, mechanism: MECHANISM, candidates: [tea, coffee, milk], window_seconds: 2,
     grace_seconds: 10, minimum_reports: 1000, budget: none, reports_per_window: 1}
"""
REPORTS = 40_000
SETTLE_SECONDS = 120


@pytest.mark.all
@pytest.mark.parametrize(
    ("mechanism", "described", "clients"),
    [
        pytest.param(
            *("local-hash, epsilon: 2.0", "local hashing, 9360 functions into 7 buckets", "--no-clients"),
            marks=pytest.mark.nightly,
        ),
        (
            "local-hash-longitudinal, epsilon_inf: 4.0, epsilon_one: 2.0, hash_functions: 2336",
            "longitudinal local hashing, 2336 functions into 7 buckets",
            "--clients=user",
        ),
    ],
    ids=["fresh", "longitudinal"],
)
def test_reports_are_counted_and_decoded_with_strings_chosen_later(
    broker: str, tmp_path: Path, mechanism: str, described: str, clients: str
) -> None:
    """Shares of .5, .3 and .2 within 6 stated standard errors: a false alarm has a probability below 1e-8."""
    deployment = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    file = tmp_path / "deniable.yaml"
    file.write_text(file.read_text() + COLLECTION.replace("MECHANISM", mechanism))
    checked = deployment.run("check")
    assert f"search: {described}, 3 candidates" in checked.stdout
    deployment.create_topics()
    words = ["coffee"] * 5 + ["maté, grün"] * 3 + ["milk"] * 2
    lines = [json.dumps({"q": words[number % 10], "user": f"user-{number}"}) for number in range(REPORTS)]
    start = int(time.time())
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("worker.log")
        options = ["--format", "jsonl", "--field", "q", clients]
        sent = deployment.run("produce", "search", *options, given="\n".join(lines).encode())
        assert (sent.returncode, sent.stdout) == (0, ""), sent.stderr
        (tmp_path / "later.txt").write_text("tea\ncoffee\nmaté, grün\nmilk\n")
        found: dict[str, tuple[float, float]] = {}

        def all_final() -> bool:
            period = ["--from", str(start - 2), "--to", str(int(time.time()) // 2 * 2 + 2)]
            decoded = deployment.run("decode", "search", "--candidates", "later.txt", *period, "--json")
            if decoded.returncode or (record := json.loads(decoded.stdout))["reports"] < REPORTS:
                return False
            estimate = record["independent"]
            errors = zip(estimate["frequency"], estimate["std_error"], strict=True)
            found.update(zip(estimate["values"], errors, strict=True))
            found["(other)"] = (estimate["other"]["frequency"], estimate["other"]["std_error"])
            return bool(record["reports"] == REPORTS)

        assert wait_until(all_final, SETTLE_SECONDS), deployment.output("worker.log")
    truth = {"tea": 0.0, "coffee": 0.5, "maté, grün": 0.3, "milk": 0.2, "(other)": 0.0}
    assert found.keys() == truth.keys()
    for name, (frequency, std_error) in found.items():
        assert abs(frequency - truth[name]) < 6 * std_error, name
        assert std_error < 0.02
