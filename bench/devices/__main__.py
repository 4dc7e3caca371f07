"""Run the parts that are named, or all: `python -m bench.devices relay`."""

import sys
from importlib import import_module

from bench.devices.results import PARTS, keep


def main() -> None:
    """Measure and write `bench/results/devices.md`."""
    for name in sys.argv[1:] or PARTS:
        keep(name, import_module(f"bench.devices.{name}").rows())


if __name__ == "__main__":
    main()
