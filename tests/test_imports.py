"""Imports point left only: estimators <- producers <- aggregator <- deploy (DESIGN section 2)."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("estimators", "producers", "aggregator", "deploy")
SOURCES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
OF_PRODUCERS = (
    "producers.wire",
    "producers.metrics.metric",
    "producers.transport.cluster",
)  # what the aggregator may import
MOST_FILES_WITH_FAUST = 2


def imported(source: str) -> set[str]:
    """Dotted names that a file imports, at its top or within functions; `from a import b` is a.b.

    Relative imports cannot leave their room, so they are left out.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def forbidden(room: str, name: str) -> bool:
    """True when a file of this room may not import this name."""
    top = name.split(".")[0]
    if top in ROOMS and ROOMS.index(top) > ROOMS.index(room):
        return True
    if room == "estimators":
        return top not in {"estimators", "numpy", "scipy"} and top not in sys.stdlib_module_names
    if room == "producers":
        return is_in(name, "random") or is_in(name, "numpy.random")
    if room == "aggregator":
        return is_in(name, "producers") and not any(is_in(name, each) for each in OF_PRODUCERS)
    return False


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_imports_point_left(path: Path) -> None:
    names = imported((ROOT / path).read_text())
    assert sorted(name for name in names if forbidden(path.parts[0], name)) == []


def test_faust_is_imported_in_two_files_at_most() -> None:
    imports = {str(path): imported((ROOT / path).read_text()) for path in SOURCES}
    files = [path for path, names in imports.items() if any(is_in(name, "faust") for name in names)]
    assert len(files) <= MOST_FILES_WITH_FAUST, files


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("estimators", "import producers.wire"),
        ("estimators", "from aggregator import ledger"),
        ("estimators", "def late():\n    import msgspec"),
        ("producers", "from aggregator.ledger.ledger import Ledger"),
        ("producers", "import deploy.broker.broker"),
        ("producers", "import random"),
        ("producers", "from numpy import random"),
        ("producers", "from numpy.random import default_rng"),
        ("aggregator", "import deploy.cli.main"),
        ("aggregator", "import producers"),
        ("aggregator", "from producers.randomization import randomizers"),
        ("aggregator", "from producers.wire_tap import decode"),
        ("aggregator", "from producers.metrics.metrics import Metric"),
    ],
)
def test_a_violation_is_seen(room: str, source: str) -> None:
    assert any(forbidden(room, name) for name in imported(source))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("estimators", "import numpy as np\nfrom estimators.mechanisms.krr import KRR\nimport random"),
        ("producers", "from estimators.mechanisms.krr import KRR\nimport numpy"),
        ("aggregator", "from producers import wire\nfrom producers.wire import decode"),
        ("aggregator", "from producers.metrics.metric import GaugeMetric"),
        ("deploy", "from aggregator import ledger\nfrom producers.randomization import randomizers"),
    ],
)
def test_what_is_allowed_is_not_forbidden(room: str, source: str) -> None:
    assert not any(forbidden(room, name) for name in imported(source))
