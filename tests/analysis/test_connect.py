"""The configurations of docs/connect.md bring a worker's estimates where it says, on the real programs."""

import json
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

import deniable
from deniable.deploy.broker.child_processes import last_lines
from tests.analysis.conftest import newest_finals
from tests.support.aggregator.kafka_connect import connect_jars, connecting, properties, samples
from tests.support.deployments import Deployment
from tests.support.needed import tool
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.timeout(900)]

GOJQ = "github.com/itchyny/gojq/cmd/gojq@v0.12.17"


def of_test(text: str, deployment: Deployment) -> dict[str, str]:
    """Properties of the page, with the test's broker, topics and folder."""
    text = text.replace("127.0.0.1:9092", deployment.servers).replace("=deniable-", f"={deployment.prefix}")
    return properties(text.replace("/var/lib/connect", str(deployment.folder)))


@pytest.mark.nightly
def test_connect_writes_estimates_that_are_read_as_from_the_topic(
    counted: Deployment, tmp_path: Path
) -> None:
    connect_jars()
    worker, connector = (of_test(each, counted) for each in samples("properties")[:2])
    lines = Path(connector["file"])
    newest = {name: [*newest_finals(counted, name).values()][-1] for name in ("carrier", "place")}
    with connecting(tmp_path, worker, connector) as log:

        def has_all() -> bool:
            found = [json.loads(line) for line in complete_lines(lines)]
            return all(each in found for each in newest.values())

        assert wait_until(has_all, 120), last_lines(log, count=40)
    for name in newest:
        config = counted.folder / "deniable.yaml"
        from_topic = deniable.read_estimates(config, collection=name, provisional=True, other=True)
        assert (
            deniable.read_estimates(config, collection=name, provisional=True, other=True, files=lines)
            == from_topic
        )


def complete_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


@pytest.mark.nightly
def test_infinity_gets_a_row_for_each_value_of_each_window(counted: Deployment, tmp_path: Path) -> None:
    go = tool("go", "install Go 1.25 or newer, which builds gojq", "NO_GO")
    (query,) = (json.loads(each) for each in samples("json"))
    address = counted.address("worker.log")
    assert query["url"].endswith("8321/api/history/carrier")
    with urlopen(f"{address}api/history/carrier", timeout=30) as answer:  # noqa: S310 - on loopback
        given = answer.read()
    command = [go, "run", GOJQ, "-c", query["root_selector"]]
    done = subprocess.run(command, input=given, capture_output=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["selector"] for each in query["columns"]} == {"time", "value", "share", "low", "high"}
    table = deniable.read_estimates(worker=address, collection="carrier", provisional=True).to_pylist()
    expected = [
        {
            "time": int(each["window_end"].timestamp() * 1000),
            "value": each["value"],
            "share": each["frequency"],
            **{name: each[name] for name in ("low", "high", "final")},
        }
        for each in table
    ]
    assert rows == expected
    assert rows
