"""What is fuzzed: each target is a module of this folder with

    SEEDS         inputs to begin with,
    check(data)   which gives these bytes to decoders, and lets every exception through but the declared one,

and, where bytes alone would not get far, mutate(mutated, seed), which makes more of mutated bytes.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

#: Modules by name, and how many inputs CI gives each.
TARGETS = {
    "packs": 1_000_000,
    "rows": 15_000,
    "estimates": 8_000,
    "configuration": 2_000,
    "inputs": 8_000,
    "http": 5_000,
}
FOUND = Path(__file__).with_name("found")


class Target(Protocol):
    SEEDS: Sequence[bytes]
    check: Callable[[bytes], None]


def target_of(name: str) -> Target:
    """Load a target; what it tests is loaded with it."""
    return import_module(f"tests.fuzz.fuzz_{name}")


def found(name: str) -> list[Path]:
    """Inputs that a target failed on once."""
    return sorted((FOUND / name).glob("*"))
