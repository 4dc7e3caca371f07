"""The page's pure parts in Node: texts, sentences, shapes of charts, order of rows, links."""

import os
import subprocess
from pathlib import Path

from tests.support.edge.browser.node import node

FOLDER = Path(__file__).with_name("page")


def test_pure_parts_of_the_page() -> None:
    files = sorted(map(str, FOLDER.glob("*.test.mjs")))
    assert len(files) == 4
    command = [node(), "--test", "--test-reporter=spec", *files]
    environment = os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
