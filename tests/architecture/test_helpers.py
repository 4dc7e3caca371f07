"""Helpers of tests are kept like code: folders of at most twelve files, each described, and no circles."""

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
    """Raise CycleError, which names the circle, if there is one."""
    graph: dict[str, set[str]] = {}
    for module, target in pairs:
        graph.setdefault(module, set()).add(target)
    TopologicalSorter(graph).prepare()


def between_rooms(folder: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows from one file or folder of this folder to another."""
    package = folder.replace("/", ".")
    inside = [pair for pair in pairs if all(is_in(name, package) and name != package for name in pair)]
    rooms = {tuple(name.removeprefix(f"{package}.").split(".")[0] for name in pair) for pair in inside}
    return {(room, other) for room, other in rooms if room != other}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_helpers_has_at_most_twelve_rooms(folder: str) -> None:
    assert len(rooms_of(folder)) <= MOST_ROOMS


@pytest.mark.parametrize("folder", FOLDERS + SCENARIOS)
def test_a_folder_of_helpers_says_what_it_holds(folder: str) -> None:
    """`tests/support` may say more; nothing else is in the file."""
    body = ast.parse((ROOT / folder / "__init__.py").read_text()).body
    assert [type(each) for each in body] == [ast.Expr]


def test_no_helpers_import_each_other_in_a_circle() -> None:
    sort(ARROWS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_rooms_of_helpers_import_each_other_in_a_circle(folder: str) -> None:
    sort(between_rooms(folder, ARROWS))


def test_a_circle_of_rooms_is_seen() -> None:
    back = ("tests.support.brokers.choice", "tests.support.secured.broker")
    there = ("tests.support.secured.closing", "tests.support.brokers.containers")
    sort([back, there])
    with pytest.raises(CycleError):
        sort(between_rooms("tests/support", [back, there]))
