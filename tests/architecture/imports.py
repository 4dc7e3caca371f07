"""Find every module and its imports by parsing the files, without importing them."""

import ast
import gc
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tests.support.paths import REPOSITORY as ROOT

PACKAGES = (
    "estimators",
    "protocol",
    "cluster",
    "config",
    "producers",
    "relay",
    "edge",
    "aggregator",
    "analysis",
    "deploy",
)


def modules(*folders: str) -> dict[str, Path]:
    """Return every module below these folders, by dotted name."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = {path.relative_to(ROOT).with_suffix(""): path for path in files}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in named.items()}


#: Of the project, which is imported through the links in `deniable`, and its benchmarks.
MODULES = {f"deniable.{name}": path for name, path in modules(*PACKAGES).items()} | modules("bench")


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the project's files, parsed, by path; benchmarks may break with an upgrade."""
    gc.disable()  # Python 3.11 fails if an object that is collected meanwhile parses, too, as tracebacks do
    try:
        return {
            path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
            for name, path in MODULES.items()
            if not name.startswith("bench")
        }
    finally:
        gc.enable()


@cache
def nodes() -> Mapping[str, list[ast.AST]]:
    """Return all nodes of each of these files."""
    return {file: list(ast.walk(tree)) for file, tree in trees().items()}


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the dotted names that a file imports, at its top or in functions; `from a import b` is a.b.

    Relative imports cannot leave their folder, so they are left out.
    """
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names
