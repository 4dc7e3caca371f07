"""The page for visitors of the demo, on a machine without a browser."""

import subprocess
import sys

import pytest

PAGE = "http://127.0.0.1:8330/try"


@pytest.mark.slow
def test_without_a_browser_the_address_is_to_be_opened_by_hand() -> None:
    code = f"from deniable.deploy.demo.devices import opened_page; print(opened_page({PAGE!r}))"
    command = [sys.executable, "-c", code]
    without = {"PATH": "/nonexistent", "BROWSER": ""}
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"what leaves your own device: no browser can be opened here, so open it yourself: {PAGE}\n"
    )
