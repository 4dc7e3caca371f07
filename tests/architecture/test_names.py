"""A class or a type alias has a name of its own, so that a name means one thing in all of the project."""

import ast
import re
from collections.abc import Iterator, Mapping

from tests.architecture.imports import MODULES, is_in

TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")  # constants are in capitals


def types_of(source: str) -> Iterator[str]:
    """Classes and aliases at the top of a file, constants too. A TypeVar means nothing beyond its file."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec"}


def ambiguous(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Names of types that several modules define, with these modules."""
    defined: dict[str, list[str]] = {}
    for module, source in sources.items():
        for name in types_of(source):
            if TYPE_NAME.fullmatch(name):
                defined.setdefault(name, []).append(module)
    return {name: modules for name, modules in defined.items() if len(modules) > 1}


def test_no_two_types_have_one_name() -> None:
    """Benchmarks are left out: their classes are used in the file that defines them, or beside it."""
    sources = {name: path.read_text() for name, path in MODULES.items() if not is_in(name, "bench")}
    assert ambiguous(sources) == {}


def test_a_second_type_of_a_name_is_seen() -> None:
    sources = {
        "a": "class Place: ...\nT = TypeVar('T')\nLIMIT = 3",
        "b": "Place = tuple[int, int]\nT = TypeVar('T')\nLIMIT = 4",
        "c": "def inside():\n    Place = int",
    }
    assert ambiguous(sources) == {"Place": ["a", "b"]}
