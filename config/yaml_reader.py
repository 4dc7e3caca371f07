"""Parse YAML; errors never quote the file, because a password may be in the wrong place."""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.nodes import MappingNode, SequenceNode
from ruamel.yaml.parser import ParserError

_QUOTED = re.compile(r"\s*['\"].*['\"]\)?", re.DOTALL)  # from the first to the last: a value may hold quotes


def parse(text: str) -> object:
    """Parse YAML 1.2; ValueError with line, column and kind of problem, never the text itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", YAMLWarning)  # it would show the line
            return YAML(typ="safe", pure=True).load(text)
    except YAMLWarning:
        raise ValueError(
            "is not YAML: an anchor (&…) is defined twice, or the like; quote values that begin with &"
        ) from None
    except TypeError:  # ruamel.yaml does not wrap this one, nor the last
        raise ValueError("names of fields must be text, got a list or a mapping") from None
    except RecursionError:
        raise ValueError("is not YAML that this can read: lists or mappings are nested too deeply") from None
    except YAMLError as error:
        raise ValueError(f"is not YAML: {_tab(text, error) or _problem(error)}") from None
    except (ValueError, LookupError):
        raise ValueError(
            "is not YAML: a value is no date, or not what its tag (!!int, !!bool, …) says; quote it: "
            '"…", without a tag'
        ) from None


def line_finder(text: str) -> Callable[[Sequence[str | int]], int | None]:
    """Return a function that finds the line of a path in YAML that `parse` has accepted.

    Its argument are names of fields and indices, outermost first; its result is a line number, from 1. An
    absent field has the line of its section; None if that is absent, too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", YAMLWarning)
        root = YAML(typ="safe", pure=True).compose(text)

    def line_of(path: Sequence[str | int]) -> int | None:
        node, line = root, root.start_mark.line + 1 if len(path) < 2 else None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line

    return line_of


def _child(node: Any, step: str | int) -> tuple[int, Any] | None:
    """Return line and node of a mapping's field or a list's element."""
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line + 1, value
    return None


def _tab(text: str, error: YAMLError) -> str | None:
    """Return what to say if a tab is where the parser stopped, or indents that line."""
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    if mark is None:
        return None
    line = text.split("\n")[mark.line] if mark.line < text.count("\n") + 1 else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" not in indent and line[mark.column : mark.column + 1] != "\t":
        return None
    return f"line {mark.line + 1} has a tab where YAML needs spaces; replace it by spaces"


def _problem(error: YAMLError) -> str:
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return str(error)
    problem = str(error.problem)
    # Only "expected …" quotes names of tokens; all other quotes contain text of the file.
    if not (isinstance(error, ParserError) and problem.startswith("expected")):
        problem = _QUOTED.sub(" …", problem)
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
