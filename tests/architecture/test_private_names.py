"""Names of libraries that are not public are where they were, and all that we use are in the list.

Otherwise a test fails with a sentence for each such name: which file needs it, and what for.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

import pytest

from tests.architecture.imports import imported, nodes
from tests.architecture.private_names import AIOKAFKA, CONSUMER, NAMES, PRIVATE, PrivateName
from tests.support.paths import REPOSITORY as ROOT

#: Characters of a text that is code, not a name.
CODE = set(" .=(")
#: Names of the standard library, and those that are public in spite of their underscore.
PUBLIC = {"_exit", "_asdict", "_replace"}
LIBRARIES = ("aiokafka", "faust", "kafka", "mode")
#: Modules that the libraries document.
PUBLIC_MODULES = {
    "aiokafka",
    "aiokafka.abc",
    "aiokafka.admin",
    "aiokafka.errors",
    "aiokafka.structs",
    "faust",
    "faust.types",
    "faust.types.auth",
    "kafka",
    "kafka.admin",
    "kafka.errors",
    "kafka.net.sasl.oauth",
}


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
        classes = inspect.getmro(owner)[:-1] if inspect.isclass(owner) else (owner,)
        source = _squeezed("".join(inspect.getsource(each) for each in classes))  # type: ignore[arg-type]
    except (TypeError, OSError):  # it is compiled
        return False
    is_member = re.search(rf"self\.{re.escape(text)}\b", source)
    return bool(is_member or (CODE & set(text) and _squeezed(text) in source))


def _squeezed(source: str) -> str:
    return re.sub(r"\s", "", source)


@pytest.mark.slow
def test_private_names_are_where_they_were() -> None:
    assert NAMES
    sentences = [sentence for name in NAMES if (sentence := moved(name))]
    assert sentences == [], "\n".join(sentences)


def test_name_that_was_moved_is_reported_in_a_sentence() -> None:
    name = PrivateName(AIOKAFKA, "aiokafka:AIOKafkaConsumer", "_gone", CONSUMER, "wait briefly")
    assert moved(name) == (
        f"aiokafka {version('aiokafka')} no longer has _gone in aiokafka:AIOKafkaConsumer; {CONSUMER} needs "
        f"it to wait briefly: adapt that file, then this list"
    )
    assert moved(name._replace(owner="aiokafka:NoClass")) is not None
    assert moved(name._replace(text="_fetch_max_wait")) is not None, "the beginning of a name is another name"


def defined(file: str) -> Iterator[str]:
    """Names that a file of ours defines itself, or mentions as texts."""
    for node in nodes()[file]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Constant(value=str(text)):
                yield text
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
                yield node.attr


@pytest.mark.slow
def test_list_is_complete() -> None:
    """Every attribute with an underscore that no file of ours defines is in the list, or public."""
    ours = {name for file in nodes() for name in defined(file)}
    used = {
        node.attr
        for of_file in nodes().values()
        for node in of_file
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
    }
    listed = {word for name in PRIVATE for word in re.findall(r"_\w+", name.text)}
    assert used & listed
    unlisted = sorted(used - ours - PUBLIC - listed)
    assert unlisted == [], "\n".join(unlisted)


@pytest.mark.slow
def test_list_names_every_file_that_uses_a_name() -> None:
    """Except where a class of ours inherits the name, or the file defines the same one."""
    listed = {(name.file, word) for name in PRIVATE for word in re.findall(r"_\w+", name.text)}
    words = {word for _, word in listed}
    used = set()
    for file, of_file in nodes().items():
        foreign = words.difference(defined(file))
        used |= {
            (file, node.attr)
            for node in of_file
            if isinstance(node, ast.Attribute)
            and node.attr in foreign
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
    assert used
    unlisted = sorted(f"{file}: {name}" for file, name in used - listed)
    assert unlisted == [], "\n".join(unlisted)


def is_public(name: str) -> bool:
    """Whether an imported name is a public module, or in one and no module itself."""
    module, _, member = name.rpartition(".")
    return name in PUBLIC_MODULES or (
        module in PUBLIC_MODULES and not isinstance(getattr(import_module(module), member), ModuleType)
    )


@pytest.mark.slow
def test_every_import_from_an_internal_module_is_listed() -> None:
    listed = {
        (name.file, dotted)
        for name in NAMES
        for dotted in (name.owner.partition(":")[0], f"{name.owner}.{name.text}".replace(":", "."))
    }
    used = {
        (file, name)
        for file, of_file in nodes().items()
        for name in imported(of_file)
        if name.partition(".")[0] in LIBRARIES and not is_public(name)
    }
    assert used
    unlisted = sorted(f"{file}: {name}" for file, name in used - listed)
    assert unlisted == [], "\n".join(unlisted)


def test_listed_files_use_the_names() -> None:
    """Otherwise a name can leave the list."""
    sources = {name.file: (ROOT / name.file).read_text() for name in NAMES}
    unused = [
        f"{name.file}: {name.text}"
        for name in NAMES
        if not any(word in sources[name.file] for word in re.findall(r"\w+", name.text))
    ]
    assert sources
    assert unused == [], "\n".join(unused)
