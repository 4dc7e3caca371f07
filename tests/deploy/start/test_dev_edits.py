"""`deniable dev` continues with an edited file; a former definition is refused with a remedy."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from deploy.broker.ports import free_port
from deploy.start.sample import COLLECTION_FILE, events
from tests.support.deploy.dev_process import Dev
from tests.support.processes import wait_until

# The sample, with short windows.
FILE = COLLECTION_FILE.replace("window_seconds: 30 ", "window_seconds: 3 ").replace(
    "window_seconds: 30", "window_seconds: 3"
)
LINES = 2000
NO_CONTENT = 204


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "deniable.yaml").write_text(FILE)
    lines = [line for line, _ in zip(events(), range(LINES + 1), strict=False)]
    (tmp_path / "events.csv").write_text("\n".join(lines) + "\n")
    return {"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}", "PYTHONPATH": os.getcwd()}


def run(folder: Path, environment: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "deploy", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def edit(folder: Path, old: str, new: str) -> None:
    file = folder / "deniable.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def without_marks(block: str) -> str:
    return "\n".join(line.replace("  # ", "  ", 1) for line in block.splitlines())


def final_of(dev: Dev, collection: str) -> Mapping[str, object]:
    """Wait for the newest final estimate of a collection on the page."""
    found: dict[str, Mapping[str, object]] = {}

    def is_final() -> bool:
        with urlopen(f"http://{dev.page()}/api/estimates/{collection}") as answer:
            if answer.status == NO_CONTENT:
                return False
            found["record"] = json.load(answer)
        return bool(found["record"]["final"])

    assert wait_until(is_final), found
    return found["record"]


@pytest.mark.broker
@pytest.mark.slow
def test_an_edited_file_counts_and_a_former_definition_is_refused(
    tmp_path: Path, environment: Mapping[str, str], kafka_jars: None
) -> None:
    def counted(collection: str, field: str, clients: str = "user") -> Mapping[str, object]:
        sent = run(
            tmp_path,
            environment,
            *f"produce {collection} --input events.csv --field {field}".split(),
            *("--clients", clients),
        )
        assert sent.returncode == 0, sent.stderr
        record = final_of(dev, collection)
        assert record["reports"] == LINES
        return record

    dev = Dev(tmp_path, environment)
    first = counted("plan", "plan")
    dev.end()

    edit(tmp_path, "    epsilon: 2  ", "    epsilon: 1  ")
    dev = Dev(tmp_path, environment)
    assert (
        "plan: defined differently now; what was counted before stays in the estimates already published\n"
        in dev.output()
    )
    second = counted("plan", "plan")
    assert second["fingerprint"] != first["fingerprint"]
    dev.end()

    dev = Dev(tmp_path, environment)  # unchanged: nothing to say
    assert "plan:" not in dev.output()
    dev.end()

    edit(tmp_path, "name: plan ", "name: tier ")
    text = (tmp_path / "deniable.yaml").read_text()
    block = text[text.index("  # - name: country") : text.index("\n\n# kafka:")]
    edit(tmp_path, block, without_marks(block))
    dev = Dev(tmp_path, environment)
    assert "plan: no longer in the file; what was counted of it stays" in dev.output()
    assert "country: counted from now on\ntier: counted from now on\n" in dev.output()
    counted("tier", "plan")
    counted("country", "country")
    assert run(tmp_path, environment, "replay").stdout == "difference: 0\n"
    dev.end()

    edit(tmp_path, "name: tier ", "name: plan ")
    refused = run(tmp_path, environment, "dev", "--web-port", "0")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "Error: deniable.yaml defines plan as it was before an edit, and a definition that was given up "
        "does not count again. Give the collection another name or definition, or empty Kafka with deniable "
        "dev --fresh"
    )
    dev = Dev(tmp_path, environment, "--fresh")
    assert (
        "emptying .deniable-dev: the reports, counts and estimates that its Kafka holds are" in dev.output()
    )
    assert counted("plan", "plan")["fingerprint"] == second["fingerprint"]
    dev.end()
