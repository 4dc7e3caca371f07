"""Programs of npm packages, in the versions that the browser client's package.json pins."""

import json
import re
import subprocess
from pathlib import Path

from tests.support.edge.browser.node import BROWSER
from tests.support.needed import missing, tool

PACKAGE = json.loads((BROWSER / "package.json").read_text())


def npm_tool(package: str, program: str, folder: Path) -> Path:
    """Return the path of a program: that in the client's folder, else it is installed into `folder`."""
    version = PACKAGE["devDependencies"][package]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    installed = BROWSER / "node_modules" / ".bin" / program
    if not installed.exists():
        npm = tool("npm", "apt-get install npm", "NO_NPM")
        options = ["--no-package-lock", "--silent", "--prefix", str(folder)]
        command = [npm, "install", *options, f"{package}@{version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            missing(f"npm cannot install {package} {version}: {done.stderr.strip()[-200:]}")
        installed = folder / "node_modules" / ".bin" / program
    found = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True).stdout
    assert found.split()[-1] == version, f"run npm install --no-package-lock in {BROWSER}"
    return installed
