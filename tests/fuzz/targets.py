"""The fuzz targets: each is a module of the folder `decoders` with

    SEEDS         initial inputs,
    check(data)   passes the bytes to decoders, and lets every exception through but the declared one,

and optionally mutate(mutated, seed), which turns mutated bytes into structured input.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

#: Number of inputs that CI runs, by target.
TARGETS = {
    "packs": 60_000,
    "uploads": 30_000,
    "relays": 10_000,
    "rows": 1_500,
    "estimates": 1_000,
    "configuration": 400,
    "inputs": 2_000,
    "http": 1_500,
}
FOUND = Path(__file__).with_name("found")


class Target(Protocol):
    SEEDS: Sequence[bytes]
    check: Callable[[bytes], None]


def target_of(name: str) -> Target:
    """Import a target and the modules that it tests."""
    return import_module(f"tests.fuzz.decoders.{name}")


def found(name: str) -> list[Path]:
    """Return past inputs that failed a target."""
    return sorted((FOUND / name).glob("*"))
