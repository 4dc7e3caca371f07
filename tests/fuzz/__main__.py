"""Fuzz every target for so many seconds, 60 if not told: python -m tests.fuzz [SECONDS].

Inputs that fail are kept in the folder of those that were found, where a test replays them.
"""

import subprocess
import sys

from tests.fuzz.targets import FOUND, TARGETS


def main(seconds: str = "60") -> int:
    """The number of targets on which an input failed."""
    failures = 0
    for name in TARGETS:
        folder = FOUND / name
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.engine", name, str(folder), f"-max_total_time={seconds}"]
        failures += subprocess.run(command, check=False).returncode != 0
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
