"""A Chromium with a profile on disk, which a test may kill and start again."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.needed import missing


@contextmanager
def profile(folder: Path) -> Iterator[Any]:
    """Start the installed Chromium with this profile; return its context."""
    from playwright.sync_api import sync_playwright  # here: only tests of browsers need it

    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        missing("Chromium is not installed")
    with sync_playwright() as driver:
        yield driver.chromium.launch_persistent_context(
            str(folder), executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )


def main_process(folder: Path) -> int:
    """Return the id of the main process, and of the group, of the browser that has this profile."""
    wanted = f"--user-data-dir={folder}".encode()
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", each, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in words and not any(word.startswith(b"--type=") for word in words):
            return int(each)
    raise LookupError(f"no browser has the profile {folder}")
