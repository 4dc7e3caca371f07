"""What the contracts of pyproject.toml for `lint-imports` cannot say: folders, docstrings, libraries."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.architecture.imports import MODULES, PACKAGES, modules
from tests.support.paths import REPOSITORY as ROOT

MAX_ENTRIES = 12
HELPERS = modules("tests/support", "tests/chaos", "tests/fuzz")
SCENARIOS = [path.parent for path in ROOT.glob("tests/scenarios/**/__init__.py")]
#: What estimators may import beside the standard library.
OF_ESTIMATORS = {"deniable", "numpy", "scipy"}

MAY_IMPORT = re.compile(r"May import (no sibling|`[\w.]+`(?:(?:,| and|, and) `[\w.]+`)*)")
BEGIN = re.compile(r"\bBegin with `([\w/]+)(?:\.py)?`")


def folders() -> list[Path]:
    """Return every folder of the project and of test helpers that contains Python files."""
    return sorted({path.parent for path in [*MODULES.values(), *HELPERS.values()]})


@cache
def docstrings() -> dict[str, str]:
    """Return the docstring of each package by its dotted name, in one line."""
    return {
        name: " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
        for name, path in MODULES.items()
        if path.name == "__init__.py"
    }


@cache
def graph() -> grimp.ImportGraph:
    """Return the imports of the project and its benchmarks, and of libraries by their first name."""
    return grimp.build_graph("deniable", "bench", include_external_packages=True, cache_dir=None)


def imports_of(package: str) -> set[tuple[str, str]]:
    """Return pairs of a module of this package and what it imports."""
    inside = [package, *graph().find_descendants(package)]
    return {(module, name) for module in inside for name in graph().find_modules_directly_imported_by(module)}


def siblings_imported(package: str) -> set[str]:
    """Return the modules and packages beside this one that its modules import.

    Imports from further up are also imports of the parent, whose docstring lists them.
    """
    parent, dot, room = package.rpartition(".")
    ours = {name for _, name in imports_of(package) if name.split(".")[0] in ("deniable", "bench")}
    inside = {name.removeprefix(parent + dot) for name in ours if name.startswith(parent + dot)}
    return {name.split(".")[0] for name in inside} - {room}


def siblings_listed(docstring: str) -> set[str] | None:
    """Return the siblings of "May import `a`, `b` and `c`" or "May import no sibling"; None without it."""
    sentences = MAY_IMPORT.findall(docstring)
    return set(re.findall(r"`([\w.]+)`", sentences[0])) if len(sentences) == 1 else None


def test_folders_have_at_most_twelve_entries() -> None:
    entries = {
        folder.relative_to(ROOT).as_posix(): {
            path.relative_to(folder).parts[0].removesuffix(".py") for path in folder.rglob("*.py")
        }
        - {"__init__"}
        for folder in folders()
    }
    assert {"producers", "deploy/cluster/doctor", "tests/support"} <= entries.keys()
    crowded = [f"{folder}: {len(names)}" for folder, names in entries.items() if len(names) > MAX_ENTRIES]
    assert crowded == [], "\n".join(crowded)


def test_init_files_are_one_docstring() -> None:
    assert SCENARIOS
    wrong = []
    for folder in [*folders(), *SCENARIOS]:
        file = folder / "__init__.py"
        body = ast.parse(file.read_text()).body if file.exists() else []
        if [type(statement) for statement in body] != [ast.Expr]:
            wrong.append(file.relative_to(ROOT).as_posix())
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
def test_docstrings_list_the_siblings_that_packages_import() -> None:
    """Exactly these, in the sentence "May import"; the contracts bound them from above alone."""
    assert {"deniable.producers.budget", "bench.comparison.runners.ours"} <= docstrings().keys()
    differing = [
        f"{package} imports {sorted(imports)}, its docstring lists {sorted(listed or ['nothing once'])}"
        for package, docstring in docstrings().items()
        if (imports := siblings_imported(package)) != (listed := siblings_listed(docstring))
    ]
    assert differing == [], "\n".join(differing)


@pytest.mark.parametrize(
    ("docstring", "siblings"),
    [
        ("What it does. May import no sibling. Begin with `a`.", set()),
        ("May import `a`, `b` and `c`, as may `d`.", {"a", "b", "c"}),
        ("May import `a`. May import `b`.", None),
    ],
)
def test_sentence_is_parsed(docstring: str, siblings: set[str] | None) -> None:
    assert siblings_listed(docstring) == siblings


def test_docstrings_name_the_module_to_begin_with() -> None:
    places = {package: BEGIN.findall(docstring) for package, docstring in docstrings().items()}
    assert places
    wrong = [
        f"{package}: {found}"
        for package, found in places.items()
        if len(found) != 1 or f"{package}.{found[0].replace('/', '.')}" not in MODULES
    ]
    assert wrong == [], "\n".join(wrong)


def test_estimators_import_numpy_and_scipy_alone() -> None:
    """Beside the standard library; a contract can only forbid libraries that it names."""
    imports = imports_of("deniable.estimators")
    assert "scipy" in {name for _, name in imports}
    allowed = OF_ESTIMATORS | sys.stdlib_module_names
    others = sorted(
        f"{module} imports {name}" for module, name in imports if name.split(".")[0] not in allowed
    )
    assert others == [], "\n".join(others)


OURS = "|".join(PACKAGES)
BARE = re.compile(
    rf"(?:^|[;\"'`]) *(?:from ({OURS})[\w.]* import|import (?:[\w.]+, *)*({OURS})\b)|-m[\"', ]+({OURS})\b",
    re.MULTILINE,
)
CODE = {".py", ".md", ".ipynb", ".sh", ".toml", ".service", ".yaml", ".yml"}


def test_our_packages_are_imported_from_deniable_alone() -> None:
    """In all text: a bare name could be an application's own, and would load a module twice."""
    text = "from edge.web import x; import producers\n  '-m', 'relay'\nimport sys, deploy.x"
    assert len(BARE.findall(text)) == 4
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [path for path in map(ROOT.joinpath, listed.splitlines()) if path.suffix in CODE]
    assert len(files) > 1000
    bare = [
        f"{path.relative_to(ROOT)}: {found[0].strip()}"
        for path in files
        if path != Path(__file__)
        for found in BARE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert bare == [], "\n".join(bare)


def test_each_module_has_one_name() -> None:
    """Whatever this process has loaded so far."""
    assert {name.partition(".")[0] for name in sys.modules} & set(PACKAGES) == set()
