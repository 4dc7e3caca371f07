"""axe-core, which finds what keeps people from using a page; from npm, and never part of what ships."""

import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.needed import missing, tool
from tests.support.paths import REPOSITORY

if TYPE_CHECKING:
    from playwright.sync_api import Page

VERSION = "4.10.3"
FOLDER = REPOSITORY / "build" / f"axe-core-{VERSION}"
SECONDS = 120
#: All rules of WCAG 2.2 at the levels A and AA, and of good practice.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@cache
def _source() -> str:
    script = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        _install()
    return script.read_text()


def _install() -> Path:
    npm = tool("npm", "apt-get install npm", "NO_NPM")
    FOLDER.mkdir(parents=True, exist_ok=True)
    options = ["--no-package-lock", "--silent", "--ignore-scripts", "--prefix", str(FOLDER)]
    command = [npm, "install", *options, f"axe-core@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        missing(f"npm cannot install axe-core {VERSION}: {done.stderr.strip()[-200:]}")
    return FOLDER


def violations(page: "Page", part: str = "html") -> list[str]:
    """Return what axe-core finds in a part of a page as it is now: the rule, the element, its fault."""
    page.evaluate(_source())  # by the debugger, which the page's content policy does not bind
    found: dict[str, Any] = page.evaluate(
        "([part, tags]) => axe.run(part, { runOnly: { type: 'tag', values: tags } })", [part, TAGS]
    )
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
