"""The shipped module in Node: scenarios of queue, retries, limits, lists and choices."""

import json
import subprocess

import pytest

from tests.support.edge.browser.lists import lists_for_scripts
from tests.support.edge.browser.node import SCRIPTS, node, run

SCENARIOS = [
    line.split('"')[1]
    for line in (SCRIPTS / "client.mjs").read_text().splitlines()
    if line.startswith('  async "')
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario):
    command = [node(), str(SCRIPTS / "client.mjs"), scenario, lists_for_scripts()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_scenario_is_run():
    assert json.loads(run("client.mjs", "names", lists_for_scripts())) == SCENARIOS
    assert len(SCENARIOS) >= 19
