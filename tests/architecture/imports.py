"""Find every module and its imports by parsing the files, without importing them."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.paths import REPOSITORY as ROOT

PACKAGES = ("estimators", "producers", "relay", "edge", "aggregator", "analysis", "deploy", "bench")


def imported(source: str) -> set[str]:
    """Return the dotted names that a file imports, at its top or in functions; `from a import b` is a.b.

    Relative imports cannot leave their folder, so they are left out.
    """
    names: set[str] = set()
    for node in _statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all statements, nested ones too; to walk expressions as well would take three times as long."""
    for each in body:
        yield each
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(each, inner, []))


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def modules(*folders: str) -> dict[str, Path]:
    """Return every module below these folders, by dotted name."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = {path.relative_to(ROOT).with_suffix(""): path for path in files}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in named.items()}


def arrows(modules: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Return pairs of a module and another of these modules that it imports."""
    pairs = [
        (module, _module_of(name, modules))
        for module, path in modules.items()
        for name in imported(path.read_text())
    ]
    return [(module, target) for module, target in pairs if target and target != module]


def _module_of(name: str, modules: Mapping[str, Path]) -> str | None:
    """Return the module that an imported name is, or is defined in."""
    return next((each for each in (name, name.rpartition(".")[0]) if each in modules), None)


def rooms_of(folder: str) -> set[str]:
    """Return the names of modules and packages in this folder."""
    inside = [path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*.py")]
    return {path.parts[0].removesuffix(".py") for path in inside} - {"__init__"}


#: Of the project and its benchmarks.
MODULES = modules(*PACKAGES)
ARROWS = arrows(MODULES)
