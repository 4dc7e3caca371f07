"""The page's pure parts in Node: texts, sentences, shapes of charts, order of rows, links."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.edge.browser.node import node
from tests.support.paths import REPOSITORY

PAGE, TESTS = "aggregator/web/page", "tests/aggregator/web/page"


@pytest.mark.slow
def test_pure_parts_of_the_page(tmp_path: Path) -> None:
    """The real modules, in a copy that says what older versions of Node do not see: that they are modules."""
    for folder in (PAGE, TESTS):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    files = sorted(map(str, (tmp_path / TESTS).glob("*.test.mjs")))
    assert len(files) == 4
    command = [node(), "--test", "--test-reporter=spec", *files]
    environment = os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
