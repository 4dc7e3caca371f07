"""Each class and type alias has a unique name, so a name means one thing in the whole project."""

import ast
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.architecture.imports import trees

TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")  # constants are in capitals


def types_of(tree: ast.Module) -> Iterator[str]:
    """Return a file's top-level classes and aliases, without constants and TypeVars."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec"}


def ambiguous(files: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return names of types that several modules define, with these modules."""
    defined: dict[str, list[str]] = {}
    for module, tree in files.items():
        for name in types_of(tree):
            if TYPE_NAME.fullmatch(name):
                defined.setdefault(name, []).append(module)
    return {name: modules for name, modules in defined.items() if len(modules) > 1}


@pytest.mark.slow
def test_type_names_are_unique() -> None:
    """Except benchmarks, whose classes are used only in their file or beside it."""
    assert "protocol/wire.py" in trees()
    found = ambiguous(trees())
    assert found == {}, "\n".join(f"{name} in {', '.join(files)}" for name, files in found.items())


def test_duplicate_type_name_is_detected() -> None:
    sources = {
        "a": "class Place: ...\nT = TypeVar('T')\nLIMIT = 3",
        "b": "Place = tuple[int, int]\nT = TypeVar('T')\nLIMIT = 4",
        "c": "def inside():\n    Place = int",
    }
    files = {name: ast.parse(source) for name, source in sources.items()}
    assert ambiguous(files) == {"Place": ["a", "b"]}
