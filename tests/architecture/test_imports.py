"""Imports run one way between packages and between the entries of a folder, without cycles."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.imports import ARROWS, MODULES, imported, is_in, rooms_of
from tests.support.paths import REPOSITORY as ROOT

ROOMS = ("estimators", "producers", "relay", "edge", "aggregator", "analysis", "deploy")
SOURCES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
OF_PRODUCERS = (
    "producers.wire",
    "producers.metrics.metric",
    "producers.transport.cluster",
    "producers.transport.uploads.id_set",
    "producers.transport.publication",
    "producers.transport.publication_reader",
)  # what the aggregator may import
RELAY_OF_PRODUCERS = (
    "producers.wire",
    "producers.metrics.metric",
    "producers.transport.cluster",
    "producers.transport.uploads",
    "producers.randomization",
)
EDGE_OF_PRODUCERS = (
    "producers.wire", "producers.transport", "producers.budget.allowance", "producers.metrics.metric",
    "producers.randomization.private_file",
)  # fmt: skip
ANALYSIS_OF_PRODUCERS = ("producers.wire", "producers.transport.cluster")
MOST_FILES_WITH_FAUST = 2
MOST_ROOMS = 12

#: The entries of a folder, modules and packages, from the bottom up: each may import only earlier ones.
ORDER = {
    "estimators": (
        "errors", "arrays", "mechanisms", "collection", "frequency", "decoding", "accounting", "canary",
        "canary_fit", "detectors", "planning", "rollup",
    ),
    "producers": (
        "errors", "wire", "concurrency", "metrics", "transport", "randomization", "storage", "budget",
        "responders", "config", "pipeline", "producer",
    ),
    "relay": (
        "keys", "control", "columns", "intake", "windows", "acceptance", "sealing", "fold",
        "recovery", "service",
    ),
    "edge": (
        "lasting_tasks", "metrics", "intake", "signing_key", "collection_list", "tls", "sending", "web",
        "server",
    ),
    "aggregator": (
        "ledger", "topics", "deployment", "records", "metrics", "estimation", "partition", "history", "views",
        "maintenance", "web", "worker",
    ),
    "analysis": (
        "errors", "arguments", "periods", "tables", "sources", "export", "rollup_table", "differences",
        "comparison", "changes",
    ),
    "deploy": (
        "config", "cli", "offline", "broker", "cluster", "services", "start", "produce", "query", "demo",
        "monitoring", "__main__",
    ),
    "deploy/cluster": ("finding", "connection", "permissions", "topics", "deployment", "doctor"),
    "bench": (
        "installed", "estimators", "aggregator", "analysis", "page", "flights_files", "notebook", "devices",
        "shared_budgets", "poisoning", "comparison",
    ),
    "bench/comparison": ("timing", "peer_environment", "report", "failures", "runners", "parts", "__main__"),
}  # fmt: skip


def forbidden(room: str, name: str) -> bool:
    """Return True if a file of this package may not import this name."""
    top = name.split(".")[0]
    if top in ROOMS and ROOMS.index(top) > ROOMS.index(room):
        return True
    if room == "estimators":
        return top not in {"estimators", "numpy", "scipy"} and top not in sys.stdlib_module_names
    if room == "producers":
        return is_in(name, "random") or is_in(name, "numpy.random")
    if room == "relay":
        return is_in(name, "producers") and not any(is_in(name, each) for each in RELAY_OF_PRODUCERS)
    if room == "edge":
        is_allowed = any(is_in(name, each) for each in EDGE_OF_PRODUCERS)
        return is_in(name, "relay") or (is_in(name, "producers") and not is_allowed)
    if room == "aggregator":
        if is_in(name, "relay") or is_in(name, "edge"):
            return True
        return is_in(name, "producers") and not any(is_in(name, each) for each in OF_PRODUCERS)
    if room == "analysis":
        if is_in(name, "relay") or is_in(name, "edge"):
            return True
        return is_in(name, "producers") and not any(is_in(name, each) for each in ANALYSIS_OF_PRODUCERS)
    return False


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_imports_point_left(path: Path) -> None:
    names = imported((ROOT / path).read_text())
    assert sorted(name for name in names if forbidden(path.parts[0], name)) == []


def uphill(folder: str, order: tuple[str, ...], module: str, target: str) -> bool:
    """Return True if both are in this folder, in different entries, and the imported entry is not earlier."""
    prefix = folder.replace("/", ".") + "."
    if not (module.startswith(prefix) and target.startswith(prefix)):
        return False
    room, other = (name.removeprefix(prefix).split(".")[0] for name in (module, target))
    return room != other and order.index(other) > order.index(room)


@pytest.mark.parametrize(("folder", "order"), ORDER.items())
def test_entries_import_only_earlier_ones(folder: str, order: tuple[str, ...]) -> None:
    assert rooms_of(folder) == set(order)
    assert [arrow for arrow in ARROWS if uphill(folder, order, *arrow)] == []


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("producers.storage.store", "producers.budget.spending"),
        ("producers.wire", "producers.pipeline.transactions"),
    ],
)
def test_import_of_a_later_entry_is_detected(module: str, target: str) -> None:
    assert uphill("producers", ORDER["producers"], module, target)
    assert not uphill("producers", ORDER["producers"], target, module)


def test_modules_have_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for module, target in ARROWS:
        graph.setdefault(module, set()).add(target)
    TopologicalSorter(graph).prepare()  # CycleError names the cycle
    graph["producers.wire"] = {"producers.producer"}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


FOLDERS = sorted({path.parent.relative_to(ROOT).as_posix() for path in MODULES.values()})


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_has_at_most_twelve_entries(folder: str) -> None:
    assert len(rooms_of(folder)) <= MOST_ROOMS


@pytest.mark.parametrize("folder", FOLDERS)
def test_init_file_is_one_docstring(folder: str) -> None:
    body = ast.parse((ROOT / folder / "__init__.py").read_text()).body
    assert [type(each) for each in body] == [ast.Expr]


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
        ("relay", "from aggregator.ledger.ledger import Ledger"),
        ("relay", "from producers.pipeline.packer import Packer"),
        ("relay", "from producers.transport.sender import Sender"),
        ("edge", "from relay.fold import Fold"),
        ("edge", "from aggregator.topics.names import Topics"),
        ("edge", "from deploy.cli.signals import handle"),
        ("edge", "from producers.pipeline.packer import Packer"),
        ("edge", "from producers.randomization.secret import Secret"),
        ("aggregator", "from relay.fold import Fold"),
        ("aggregator", "from edge.answers import Answer"),
        ("aggregator", "import deploy.cli.main"),
        ("aggregator", "import producers"),
        ("aggregator", "from producers.randomization import randomizers"),
        ("aggregator", "from producers.wire_tap import decode"),
        ("aggregator", "from producers.metrics.metrics import Metric"),
        ("aggregator", "from analysis.errors import AnalysisError"),
        ("analysis", "from deploy.config.file import load"),
        ("analysis", "from producers.pipeline.packer import Packer"),
        ("analysis", "from edge.server import Server"),
    ],
)
def test_violation_is_detected(room: str, source: str) -> None:
    assert any(forbidden(room, name) for name in imported(source))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("estimators", "import numpy as np\nfrom estimators.mechanisms.krr import KRR\nimport random"),
        ("producers", "from estimators.mechanisms.krr import KRR\nimport numpy"),
        ("relay", "from producers import wire\nfrom producers.transport.uploads.upload import decode_upload"),
        ("edge", "from producers import wire\nfrom producers.transport.cluster import Cluster"),
        ("edge", "from producers.budget.allowance import Allowance"),
        ("aggregator", "from producers import wire\nfrom producers.wire import decode"),
        ("aggregator", "from producers.metrics.metric import GaugeMetric"),
        ("analysis", "from aggregator.history.rollup import roll_up"),
        ("deploy", "from aggregator import ledger\nfrom producers.randomization import randomizers"),
    ],
)
def test_allowed_operations_are_not_forbidden(room: str, source: str) -> None:
    assert not any(forbidden(room, name) for name in imported(source))
