"""Fuzz every target for some seconds, 60 by default: python -m tests.fuzz [SECONDS].

Failing inputs are kept in the folder `found`, from which a test replays them.
"""

import subprocess
import sys

from tests.fuzz.targets import FOUND, TARGETS


def main(seconds: str = "60") -> int:
    """Fuzz all targets; return the number of those that failed."""
    failures = 0
    for name in TARGETS:
        folder = FOUND / name
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.engine", name, str(folder), f"-max_total_time={seconds}"]
        failures += subprocess.run(command, check=False).returncode != 0
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
