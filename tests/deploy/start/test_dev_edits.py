"""`deniable dev` continues with an edited file; a former definition is refused with a remedy."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from deniable.aggregator.maintenance.adoption import Adoption
from deniable.deploy.start.edited_file import changes
from deniable.deploy.start.init import COLLECTION_FILE, events
from tests.deploy.start.dev_process import Dev
from tests.support.processes import new_port, wait_until

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
    return {"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{new_port()}", "PYTHONPATH": os.getcwd()}


def run(folder: Path, environment: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "deniable", *words]
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


def counted(
    dev: Dev, folder: Path, environment: Mapping[str, str], collection: str, field: str
) -> Mapping[str, object]:
    """Send all lines, at once; return the final estimate."""
    words = f"produce {collection} --input events.csv --field {field} --clients user"
    sent = run(folder, environment, *words.split())
    assert sent.returncode == 0, sent.stderr
    record = final_of(dev, collection)
    assert record["reports"] == LINES
    return record


@pytest.mark.nightly
@pytest.mark.broker
def test_another_epsilon_counts_and_the_former_one_needs_fresh(
    tmp_path: Path, environment: Mapping[str, str], kafka_jars: None
) -> None:
    dev = Dev(tmp_path, environment)
    first = counted(dev, tmp_path, environment, "plan", "plan")
    dev.end()

    edit(tmp_path, "    epsilon: 2  ", "    epsilon: 1  ")
    dev = Dev(tmp_path, environment)
    assert "\nplan: " in f"\n{dev.output()}"
    second = counted(dev, tmp_path, environment, "plan", "plan")
    assert second["fingerprint"] != first["fingerprint"]
    dev.end()

    edit(tmp_path, "    epsilon: 1  ", "    epsilon: 2  ")
    refused = run(tmp_path, environment, "dev", "--web-port", "0")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("Error: deniable.yaml defines plan ")
    dev = Dev(tmp_path, environment, "--fresh")
    assert "emptying .deniable-dev: " in dev.output()
    assert counted(dev, tmp_path, environment, "plan", "plan")["fingerprint"] == first["fingerprint"]
    dev.end()


@pytest.mark.nightly
@pytest.mark.broker
def test_a_new_name_and_another_collection_count(
    tmp_path: Path, environment: Mapping[str, str], kafka_jars: None
) -> None:
    Dev(tmp_path, environment).end()
    edit(tmp_path, "name: plan ", "name: tier ")
    text = (tmp_path / "deniable.yaml").read_text()
    block = text[text.index("  # - name: country") : text.index("\n\n# kafka:")]
    edit(tmp_path, block, without_marks(block))
    dev = Dev(tmp_path, environment)
    assert "plan: no longer in the file; what was counted of it stays" in dev.output()
    assert "country: counted from now on\ntier: counted from now on\n" in dev.output()
    counted(dev, tmp_path, environment, "tier", "plan")
    counted(dev, tmp_path, environment, "country", "country")
    assert run(tmp_path, environment, "replay").stdout == "difference: 0\n"
    dev.end()
    dev = Dev(tmp_path, environment)  # unchanged: nothing to say
    assert "counted from now on" not in dev.output()
    dev.end()


def test_changes_are_one_line_for_each_collection() -> None:
    found = Adoption(3, redefined=["a"], removed=["b"], added=["c"], changed=["d"], retired=[])
    assert changes(found) == [
        "a: defined differently now; what was counted before stays in the estimates already published",
        "b: no longer in the file; what was counted of it stays in the estimates already published",
        "c: counted from now on",
        "d: the new grace, retention or window_packs apply to windows that begin in more than 5 minutes",
    ]
