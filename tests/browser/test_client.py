"""The shipped module in Node: scenarios of queue, retries, limits, lists and choices."""

import json
import subprocess

import pytest

from tests.support.edge.browser.lists import lists_for_scripts
from tests.support.edge.browser.node import BROWSER, SCRIPTS, node, run

SCENARIOS = [
    line.split('"')[1]
    for line in (SCRIPTS / "client.mjs").read_text().splitlines()
    if line.startswith('  async "')
]


@pytest.fixture(scope="module")
def ends():
    """The error of each scenario, None for none."""
    return json.loads(run("client.mjs", lists_for_scripts()))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(ends, scenario):
    assert ends[scenario] is None, ends[scenario]


ENDS = """
const { memoryStorage, open } = await import(process.argv[1]);
const edge = "http://127.0.0.1:1";
const client = await open({ edge, publicKey: `${"A".repeat(43)}=`, maxEpsilon: 1, storage: memoryStorage() });
await client.report("many", 3).catch(() => {});
await client.flush();
"""


@pytest.mark.slow
def test_open_client_keeps_no_process_alive():
    """Its timers and its channel to other clients do not hold Node back."""
    command = [node(), "--input-type=module", "--eval", ENDS, str(BROWSER / "deniable.min.js")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_every_scenario_is_run(ends):
    assert [*ends] == SCENARIOS
    assert len(SCENARIOS) >= 27
