"""The package `deniable` that applications import."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from prometheus_client import CollectorRegistry

import deniable
from tests.support.paths import REPOSITORY


def test_every_public_name_exists() -> None:
    assert [name for name in deniable.__all__ if not hasattr(deniable, name)] == []


#: Files of an application beside its program: our packages, and a name that libraries like to use.
FILES = (
    "analysis.py",
    "deploy.py",
    "edge/__init__.py",
    "estimators.py",
    "config.py",
    "kafka_settings.py",
)
PROGRAM = """
import deniable
deniable.load, deniable.Producer, deniable.read_estimates, deniable.KRR.from_epsilon(4, 1.0)
"""


@pytest.mark.slow
def test_an_application_may_have_files_of_our_names(tmp_path: Path) -> None:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("raise SystemExit('the wrong module was run')")
    (tmp_path / "main.py").write_text(f"import sys; sys.path.append({str(REPOSITORY)!r})\n{PROGRAM}")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# Kibibytes and milliseconds of the import alone, over those of a bare Python.
COST = """
import re, sys, time
def resident():
    return int(re.search(r"VmRSS:\\s*(\\d+)", open("/proc/self/status").read())[1])
resident()
before, memory, began = set(sys.modules), resident(), time.process_time()
import deniable
seconds, grown = time.process_time() - began, resident() - memory
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - sys.stdlib_module_names), grown, seconds)
"""


@pytest.mark.slow
def test_import_alone_loads_nothing_else() -> None:
    """At most 5 MiB; and 10 ms, which a busy processor may take three times as long for."""
    done = subprocess.run(
        [sys.executable, "-c", COST], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    found = re.fullmatch(r"(\[.*\]) (\d+) (\S+)\n", done.stdout)
    assert found is not None
    assert found[1] == "['deniable']"
    assert int(found[2]) < 5 * 1024
    assert float(found[3]) < 0.03


def test_types_of_names_are_those_that_are_imported() -> None:
    """What type checkers and editors see is written beside what Python looks up."""
    tree = ast.parse(Path(deniable.__file__).read_text(encoding="utf-8"))
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and each.module]
    typed = {alias.asname: each.module for each in imports for alias in each.names if alias.asname}
    assert typed == deniable.PLACES


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="'deniable' has no attribute 'no_such_name'"):
        _ = deniable.no_such_name


def test_errors_of_open_producer_are_public() -> None:
    """Every error that its docstring names can be caught without importing anything deeper."""
    documented = set(re.findall(r"[A-Z]\w+Error", deniable.open_producer.__doc__ or ""))
    assert documented
    assert documented <= set(deniable.__all__)


# What an application's process may notice of an import.
STATE = """
import json, locale, logging, os, signal, socket, sys, threading, warnings
def state():
    return {
        "environment": dict(os.environ),
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "levels": [logging.root.level, len(logging.root.handlers), logging.lastResort.level],
        "warnings": [str(each) for each in warnings.filters if "ruamel" not in str(each)],  # its own
        "threads": threading.active_count(),
        "hooks": [str(sys.excepthook), str(threading.excepthook)],
        "locale": locale.setlocale(locale.LC_ALL),
        "path": sys.path,
        "timeout": socket.getdefaulttimeout(),
        "recursion": sys.getrecursionlimit(),
    }
import numpy  # sets warnings filters of its own
before = state()
import deniable
deniable.load, deniable.ProducerConfig, deniable.Collection
after = state()
changed = [name for name in before if before[name] != after[name]]
print(json.dumps({"changed": changed, "loaded": list(sys.modules)}))
"""
HEAVY = {
    "scipy",
    "aiokafka",
    "kafka",
    "faust",
    "aiohttp",
    "rich",
    "matplotlib",
    "prometheus_client",
    "pyarrow",
}


@pytest.fixture(scope="module")
def imported_alone() -> dict[str, list[str]]:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", STATE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_import_changes_nothing_in_the_process(imported_alone: dict[str, list[str]]) -> None:
    assert imported_alone["changed"] == []


@pytest.mark.slow
def test_import_loads_no_large_library(imported_alone: dict[str, list[str]]) -> None:
    assert {name.partition(".")[0] for name in imported_alone["loaded"]} & HEAVY == set()


WITHOUT_SCIPY = """
import pydoc, sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent)
import deniable
from deniable import *

assert "rollup" in pydoc.plain(pydoc.render_doc(deniable))
try:
    deniable.rollup("deniable.yaml", collection="carrier")
except deniable.AnalysisError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_an_extra_names_can_be_looked_at() -> None:
    command = [sys.executable, "-c", WITHOUT_SCIPY]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "deniable.rollup needs scipy: pip install 'deniable[analysis]'\n", ended.stderr


WRONG_CALLS = """
import deniable
import numpy as np

producer = deniable.open_producer("deniable.yaml")
producer.report("opened", 17, clients="5", at=12.5)
producer.report("opened", [1, 2], clients=None)
producer.report("opened", np.array([1, 2]), clients=np.array(["a", "b"]), at=np.array([1, 2]))
producer.report("opened", [{"a"}, {"b"}], clients=("a", "b"), at=[1, 2.5])
producer.report("opened", [["a"], ["b"]], None)
producer.report("opened", 17, clients=5)
producer.report("opened", 17, clients="5", at="yesterday")  # wrong
producer.report("opened", 1.5, clients=None)
producer.report("opened", None, clients=None)
producer.report("opened", object(), clients=None)  # wrong
producer.report(5, "AA", clients=None)  # wrong
producer.report("opened", "AA")  # wrong
deniable.open_producer(5)  # wrong
deniable.Krr  # wrong
"""


@pytest.mark.all
def test_wrong_types_of_arguments_fail_mypy(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(WRONG_CALLS)
    command = [sys.executable, "-m", "mypy", "--strict", str(file)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    wrong = [number for number, line in enumerate(WRONG_CALLS.splitlines(), 1) if line.endswith("# wrong")]
    assert [int(each) for each in re.findall(r"application.py:(\d+): error", done.stdout)] == wrong, (
        done.stdout
    )


#: Methods and properties of these have public types alone; of other classes, constructors and fields.
WHOLE = ("Producer", "ProducerConfig", "Configuration")


def test_signatures_have_only_public_types() -> None:
    """All that an application needs to build a configuration, or can read from one, is in `deniable`."""
    public = {name: getattr(deniable, name) for name in deniable.__all__}
    classes = [each for each in public.values() if inspect.isclass(each)]
    functions = [*map(_constructor, classes), deniable.open_producer, deniable.load]
    for name in WHOLE:
        functions += _methods(public[name])
    missing = {
        f"{name} in {function.__qualname__}"
        for function in functions
        if function is not None
        for hint in get_type_hints(function, _names_in(function.__module__)).values()
        for name in _our_classes(hint)
    }
    fields = {
        f"{name} in {each.__name__}.{field}"
        for each in classes
        for field, hint in get_type_hints(each, _names_in(each.__module__)).items()
        if not field.startswith("_")
        for name in _our_classes(hint)
    }
    named = {each.partition(" ")[0] for each in missing | fields}
    assert {
        "Allowance",
        "Security",
        "KafkaSection",
        "Collection",
        "KRR",
        "Cluster",
    } <= named  # finds them
    assert {each for each in missing | fields if each.partition(" ")[0] not in public} == set()


def _names_in(module: str) -> dict[str, object]:
    """Return what annotations of a module may name, also what is imported late."""
    late = {"Producer": deniable.Producer, "Path": Path, "CollectorRegistry": CollectorRegistry}
    return {**vars(sys.modules[module]), **late}


def _constructor(cls: type) -> Callable[..., object] | None:
    found = inspect.getattr_static(cls, "__init__")
    return found if inspect.isfunction(found) else None


def _methods(cls: type) -> list[Callable[..., object]]:
    functions = [each for name, each in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"]
    properties = inspect.getmembers(cls, lambda each: isinstance(each, property))
    return functions + [each.fget for name, each in properties if name[0] != "_"]


def _our_classes(hint: object) -> set[str]:
    """Return the names of our classes in a type hint."""
    inner = {name for part in get_args(hint) for name in _our_classes(part)}
    is_ours = isinstance(hint, type) and hint.__module__.partition(".")[0] == "deniable"
    return inner | ({hint.__name__} if is_ours else set())
