"""Test helpers follow the rules of code: folders of at most twelve entries, docstrings, no import cycles."""

import ast
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.imports import arrows, is_in, modules, rooms_of
from tests.support.paths import REPOSITORY as ROOT

MOST_ROOMS = 12
HELPERS = ("tests/support", "tests/chaos", "tests/fuzz")
FILES = modules(*HELPERS)
ARROWS = arrows(FILES)
FOLDERS = sorted({path.parent.relative_to(ROOT).as_posix() for path in FILES.values()})
SCENARIOS = sorted(
    path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/scenarios/**/__init__.py")
)


def sort(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise CycleError, which names the cycle, if there is one."""
    graph: dict[str, set[str]] = {}
    for module, target in pairs:
        graph.setdefault(module, set()).add(target)
    TopologicalSorter(graph).prepare()


def between_rooms(folder: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the imports from one entry of this folder to another."""
    package = folder.replace("/", ".")
    inside = [pair for pair in pairs if all(is_in(name, package) and name != package for name in pair)]
    rooms = {tuple(name.removeprefix(f"{package}.").split(".")[0] for name in pair) for pair in inside}
    return {(room, other) for room, other in rooms if room != other}


@pytest.mark.parametrize("folder", FOLDERS)
def test_helper_folder_has_at_most_twelve_entries(folder: str) -> None:
    assert len(rooms_of(folder)) <= MOST_ROOMS


@pytest.mark.parametrize("folder", FOLDERS + SCENARIOS)
def test_helper_folder_has_a_docstring(folder: str) -> None:
    """The `__init__.py` contains nothing else."""
    body = ast.parse((ROOT / folder / "__init__.py").read_text()).body
    assert [type(each) for each in body] == [ast.Expr]


def test_helper_modules_have_no_import_cycle() -> None:
    sort(ARROWS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_helper_folders_have_no_import_cycle(folder: str) -> None:
    sort(between_rooms(folder, ARROWS))


def test_cycle_of_folders_is_detected() -> None:
    back = ("tests.support.brokers.choice", "tests.support.secured.broker")
    there = ("tests.support.secured.closing", "tests.support.brokers.containers")
    sort([back, there])
    with pytest.raises(CycleError):
        sort(between_rooms("tests/support", [back, there]))
