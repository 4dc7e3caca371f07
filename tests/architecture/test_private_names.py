"""Names of libraries that are not public are where they were, and all that we use are in the list.

Otherwise the test of that name fails with a sentence that says which file needs it, and what for.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

import pytest

from tests.architecture.imports import MODULES, imported
from tests.architecture.private_names import AIOKAFKA, CONSUMER, NAMES, PRIVATE, PrivateName
from tests.support.paths import REPOSITORY as ROOT

#: Characters of a text that is code, not a name.
CODE = set(" .=(")
#: Names of the standard library, and those that are public in spite of their underscore.
PUBLIC = {"_exit", "_asdict"}
LIBRARIES = ("aiokafka", "faust", "kafka", "mode")
#: Modules that the libraries document.
PUBLIC_MODULES = {
    "aiokafka",
    "aiokafka.admin",
    "aiokafka.errors",
    "aiokafka.structs",
    "faust",
    "faust.types",
    "faust.types.auth",
    "kafka",
    "kafka.admin",
    "kafka.errors",
}
#: Files of ours; benchmarks may break with an upgrade.
FILES = [path.relative_to(ROOT).as_posix() for name, path in MODULES.items() if not name.startswith("bench")]


@cache
def trees() -> dict[str, ast.Module]:
    """Our files, parsed."""
    return {file: ast.parse((ROOT / file).read_text()) for file in FILES}


def moved(name: PrivateName) -> str | None:
    """A sentence if the library has moved the name; None if it is where it was."""
    module, _, owner = name.owner.partition(":")
    found = import_module(module)
    if owner:
        found = getattr(found, owner, None)
    if found is not None and (hasattr(found, name.text) or _is_in_source(name.text, found)):
        return None
    return (
        f"{name.library} {version(name.library)} no longer has {name.text} in {name.owner}; {name.file} "
        f"needs it to {name.purpose}: adapt that file, then this list"
    )


def _is_in_source(text: str, owner: object) -> bool:
    """Whether the owner's source assigns this member to its instances, or contains this code."""
    try:
        source = _squeezed(inspect.getsource(owner))  # type: ignore[arg-type]
    except (TypeError, OSError):  # it is compiled
        return False
    is_member = re.search(rf"self\.{re.escape(text)}\b", source)
    return bool(is_member or (CODE & set(text) and _squeezed(text) in source))


def _squeezed(source: str) -> str:
    return re.sub(r"\s", "", source)


of_each_name = pytest.mark.parametrize(
    "name", NAMES, ids=lambda name: f"{name.owner}.{name.text[:40]}-{name.file}"
)


@of_each_name
def test_private_name_is_where_it_was(name: PrivateName) -> None:
    assert moved(name) is None, moved(name)


def test_name_that_was_moved_is_reported_in_a_sentence() -> None:
    name = PrivateName(AIOKAFKA, "aiokafka:AIOKafkaConsumer", "_gone", CONSUMER, "wait briefly")
    assert moved(name) == (
        f"aiokafka {version('aiokafka')} no longer has _gone in aiokafka:AIOKafkaConsumer; {CONSUMER} needs "
        f"it to wait briefly: adapt that file, then this list"
    )
    assert moved(name._replace(owner="aiokafka:NoClass")) is not None
    assert moved(name._replace(text="_fetch_max_wait")) is not None, "the beginning of a name is another name"


def defined(tree: ast.AST) -> Iterator[str]:
    """Names that a file of ours defines itself, or mentions as texts."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Constant(value=str(text)):
                yield text
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
                yield node.attr


def test_list_is_complete() -> None:
    """Every attribute with an underscore that no file of ours defines is in the list, or public."""
    ours = {name for tree in trees().values() for name in defined(tree)}
    used = {
        node.attr
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
    }
    listed = {word for name in PRIVATE for word in re.findall(r"_\w+", name.text)}
    assert used - ours - PUBLIC <= listed


def test_list_names_every_file_that_uses_a_name() -> None:
    """Except where a class of ours inherits the name, or the file defines the same one."""
    listed = {(name.file, word) for name in PRIVATE for word in re.findall(r"_\w+", name.text)}
    words = {word for _, word in listed}
    used = set()
    for file, tree in trees().items():
        foreign = words.difference(defined(tree))
        used |= {
            (file, node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr in foreign
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
    assert used <= listed


def is_public(name: str) -> bool:
    """Whether an imported name is a public module, or in one and no module itself."""
    module, _, member = name.rpartition(".")
    return name in PUBLIC_MODULES or (
        module in PUBLIC_MODULES and not isinstance(getattr(import_module(module), member), ModuleType)
    )


def test_every_import_from_an_internal_module_is_listed() -> None:
    listed = {
        (name.file, dotted)
        for name in NAMES
        for dotted in (name.owner.partition(":")[0], f"{name.owner}.{name.text}".replace(":", "."))
    }
    used = {
        (file, name)
        for file in FILES
        for name in imported((ROOT / file).read_text())
        if name.partition(".")[0] in LIBRARIES and not is_public(name)
    }
    assert used
    assert used <= listed


@of_each_name
def test_listed_file_uses_the_name(name: PrivateName) -> None:
    """Otherwise it can leave the list."""
    source = (ROOT / name.file).read_text()
    assert any(word in source for word in re.findall(r"\w+", name.text))
