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
    "packs": 20_000,
    "uploads": 10_000,
    "relays": 3_000,
    "rows": 250,
    "estimates": 150,
    "configuration": 120,
    "inputs": 600,
    "http": 300,
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
