"""A package's docstring lists exactly the siblings that its modules import, and where to begin reading."""

import ast
import re

import pytest

from tests.architecture.imports import ARROWS, MODULES, PACKAGES, is_in

MAY_IMPORT = re.compile(r"May import (no sibling|`[\w.]+`(?:(?:,| and|, and) `[\w.]+`)*)")
BEGIN = re.compile(r"\bBegin with `([\w/]+)(?:\.py)?`")

DOCSTRINGS = {
    name: " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    for name, path in MODULES.items()
    if path.name == "__init__.py"
}


def allowed(docstring: str) -> set[str]:
    """Return the siblings named in the sentence "May import `a`, `b` and `c`" or "May import no sibling"."""
    (sentence,) = MAY_IMPORT.findall(docstring)
    return set(re.findall(r"`([\w.]+)`", sentence))


def siblings_imported(package: str, arrows: list[tuple[str, str]]) -> set[str]:
    """Return the modules and packages beside this one that its modules import.

    Imports from further up are also imports of the parent, whose docstring lists them.
    """
    parent, dot, room = package.rpartition(".")
    targets = {target for module, target in arrows if is_in(module, package)}
    inside = {target.removeprefix(parent + dot) for target in targets if target.startswith(parent + dot)}
    return {target.split(".")[0] for target in inside} - {room}


@pytest.mark.parametrize("package", DOCSTRINGS)
def test_package_imports_exactly_the_siblings_in_its_docstring(package: str) -> None:
    assert siblings_imported(package, ARROWS) == allowed(DOCSTRINGS[package])


@pytest.mark.parametrize("package", DOCSTRINGS)
def test_package_names_where_to_begin(package: str) -> None:
    (place,) = BEGIN.findall(DOCSTRINGS[package])
    assert f"{package}.{place.replace('/', '.')}" in MODULES


def test_every_package_is_examined() -> None:
    assert set(PACKAGES) <= DOCSTRINGS.keys()
    assert {"producers.budget", "deploy.cluster.doctor", "bench.comparison.runners.ours"} <= DOCSTRINGS.keys()


@pytest.mark.parametrize(
    ("docstring", "siblings"),
    [
        ("What it does. May import no sibling. Begin with `a`.", set()),
        ("May import `errors`, for a reason.", {"errors"}),
        ("May import `a`, `b` and `c`, as may `d`.", {"a", "b", "c"}),
    ],
)
def test_sentence_is_parsed(docstring: str, siblings: set[str]) -> None:
    assert allowed(docstring) == siblings


@pytest.mark.parametrize(
    ("module", "target", "package", "sibling"),
    [
        ("producers.wire", "producers.storage.store", "producers.wire", "storage"),
        ("producers.budget.spending", "producers.pipeline.packer", "producers.budget", "pipeline"),
        ("deploy.cluster.topics.plan", "deploy.cluster.doctor.case", "deploy.cluster.topics", "doctor"),
        ("deploy.cluster.topics.plan", "deploy.query.watch", "deploy.cluster", "query"),
        ("estimators.arrays", "aggregator.worker", "estimators", "aggregator"),
    ],
)
def test_import_missing_from_docstring_is_detected(
    module: str, target: str, package: str, sibling: str
) -> None:
    assert siblings_imported(package, [(module, target)]) == {sibling}
