"""Read a document by the types of its fields, and name all that is wrong with it at once.

Each field is converted alone, so that a wrong one hides no other. Then the checks of its section run on the
right fields. A check that reads a wrong one ends and says nothing: what it would find follows from that.
Rule: messages are made from a field's path, type and value, never from those of msgspec.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal

import msgspec

from deniable.config.section import Section, default_of, known_fields, list_in, may_be_shown, sections_in
from deniable.config.words import missing_field, refusal, unknown_field

YamlPath = tuple[str | int, ...]

MAX_WRONG_ITEMS = 20  # that are named of one list
_UNFIT = (
    msgspec.ValidationError,
    UnicodeEncodeError,
)  # the latter for half a character, "\\ud800", as a number


@dataclass(frozen=True)
class Problem:
    """A mistake.

    Parameters
    ----------
    path : of the wrong field, which may be absent: names and indices, outermost first.
    message : for people.
    """

    path: YamlPath
    message: str


class _FollowsError(Exception):
    """A check has read a wrong field."""


class _Wrong:
    def __getattr__(self, name: str) -> Any:
        raise _FollowsError(name)


#: In place of a value that cannot be used.
WRONG: Final = _Wrong()


class RightFields:
    """A section of which some fields are wrong: it has the others, and the methods of its kind.

    Parameters
    ----------
    kind : of the section.
    values : of the right fields, by name.
    """

    def __init__(self, kind: type[Section], values: Mapping[str, Any]) -> None:
        self._kind = kind
        self._values = values

    def __getattr__(self, name: str) -> Any:
        """Return a field or a method."""
        if name in self._values:
            return self._values[name]
        if name in self._kind.__struct_fields__:
            raise _FollowsError(name)
        attribute = getattr(self._kind, name)
        return attribute.__get__(self) if callable(attribute) else attribute


class Walk:
    """Reads a document, and collects what is wrong.

    Parameters
    ----------
    file : the whole document's kind: its fields may be in the wrong place.
    notes : what to add to contradictions, by the field of the whole document that they are in.
    """

    def __init__(self, file: type[Section], notes: Mapping[str, str]) -> None:
        self._file = file
        self._notes = notes
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, in the order found; what was found twice, once."""
        return list(self._problems)

    def add(self, path: YamlPath, message: str, field: str | None = None) -> None:
        """Add a problem of the value at a path, or of one of its fields."""
        words = path_words(path)
        problem = Problem(
            path if field is None else (*path, field), f"{words}: {message}" if words else message
        )
        self._problems[problem] = None

    def attempt(self, path: YamlPath, section: Any, check: Callable[..., Any], *arguments: object) -> Any:
        """Return what a check of the section at this path returns; WRONG if it fails or reads a wrong field.

        By rule, the message of its ValueError begins with the name of the field to blame, if there is one.
        """
        try:
            return check(*arguments)
        except _FollowsError:
            return WRONG
        except ValueError as error:
            words = f"{path_words(path)}{_name_of(section, path)}"
            note = self._notes.get(str(path[0]), "") if path else ""
            field = re.split(r"[ .]", str(error).removeprefix("number of "), maxsplit=1)[0]
            self._problems[Problem((*path, field), f"{words}: {error}{note}")] = None
            return WRONG

    def read(
        self, kind: Any, value: object, path: YamlPath = (), remedy: str = "", *, is_shown: bool = True
    ) -> Any:
        """Return a value as this type; RightFields for a section with wrong fields, WRONG for wrong values.

        Parameters
        ----------
        kind : Section, or type of a field.
        value : that the document has.
        path : of the value.
        remedy : what messages say last.
        is_shown : whether messages may show the value.
        """
        sections = sections_in(kind)
        if sections and isinstance(value, dict):
            return self._section(sections, value, path, is_shown)
        listed = list_in(kind)
        if listed is not None and isinstance(value, list) and listed.allows(len(value)):
            return self._list(kind, listed.item, value, path, is_shown)
        try:
            return msgspec.convert(value, kind)
        except _UNFIT:
            is_shown = is_shown and all(map(may_be_shown, sections))
            self.add(path, refusal(kind, value, remedy, is_shown=is_shown))
            return WRONG

    def _list(self, kind: Any, item: Any, value: list[Any], path: YamlPath, is_shown: bool) -> Any:
        """Read a list: of sections, with WRONG for a wrong one; else as a whole."""
        if sections_in(item):
            return [self.read(item, each, (*path, i), is_shown=is_shown) for i, each in enumerate(value)]
        try:
            return msgspec.convert(value, kind)
        except _UNFIT:
            known = len(self._problems)
            for i, each in enumerate(value):
                self.read(item, each, (*path, i), is_shown=is_shown)
                if len(self._problems) - known == MAX_WRONG_ITEMS:
                    break
            return WRONG

    def _section(
        self, kinds: Sequence[type[Section]], value: dict[Any, Any], path: YamlPath, is_shown: bool
    ) -> Any:
        kind = self._kind(kinds, value, path)
        if kind is None:
            return WRONG
        is_shown = is_shown and kind.shows_values
        meant = self._unknown_names(kind, kinds, value, path, is_shown)
        right: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            name, result = field.name, WRONG
            if name in value:
                result = self.read(field.type, value[name], (*path, name), kind.remedy, is_shown=is_shown)
            elif name not in meant and field.required:
                self.add(path, missing_field(name, field.type, kind.remedy), name)
            elif name not in meant:
                result = default_of(field)
            if result is not WRONG:
                right[name] = result
        return self._checked(kind, right, path)

    def _kind(
        self, kinds: Sequence[type[Section]], value: Mapping[Any, Any], path: YamlPath
    ) -> type[Section] | None:
        """Return the kind of section that the tag names, or probably means; None if that is not clear."""
        tag = kinds[0].__struct_config__.tag_field
        if tag is None:
            return kinds[0]
        by_tag = {str(kind.__struct_config__.tag): kind for kind in kinds}
        tags: Any = Literal[tuple(by_tag)]
        texts = {
            name: given for name, given in value.items() if isinstance(name, str) and isinstance(given, str)
        }
        if tag in value:
            given = texts.get(tag, "")
            if given not in by_tag:
                self.add((*path, tag), refusal(tags, value[tag]))
        else:  # its name may be misspelt
            misspelt = get_close_matches(tag, [name for name in texts if texts[name] in by_tag], 1)
            given = texts[misspelt[0]] if misspelt else ""
            if not misspelt:
                self.add(path, missing_field(tag, tags), tag)
        near = get_close_matches(given, by_tag, 1)
        return by_tag[near[0]] if near else None

    def _unknown_names(
        self,
        kind: type[Section],
        kinds: Sequence[type[Section]],
        value: Mapping[Any, Any],
        path: YamlPath,
        is_shown: bool,
    ) -> Collection[str | None]:
        """Add a problem for each name that is no field; return the fields that are probably meant."""
        meant: set[str | None] = set()
        for name in value:
            if not isinstance(name, str):
                got = repr(name) if is_shown and (may_be_shown(kind) or not path) else "another type"
                self.add(path, f"names of fields must be text, got {got}", str(name))
            elif name not in kind.__struct_fields__ and name != kind.__struct_config__.tag_field:
                message, field = unknown_field(name, kind, known_fields(kind), kinds, self._file)
                self.add(path, message, name)
                if field not in value:
                    meant.add(field)
        return meant

    def _checked(self, kind: type[Section], right: dict[str, Any], path: YamlPath) -> Any:
        """Run the checks; the fields that they blame are wrong, too."""
        is_whole = len(right) == len(kind.__struct_fields__)
        section = kind(**right) if is_whole else RightFields(kind, right)
        known = len(self._problems)
        for name in dir(kind):
            if name.startswith("check_"):
                self.attempt(path, section, getattr(section, name))
        blamed = right.keys() & {problem.path[-1] for problem in self.problems[known:]}
        return RightFields(kind, {name: right[name] for name in right.keys() - blamed}) if blamed else section


def path_words(path: YamlPath) -> str:
    """Write a path: `collections[0].values[1]`; empty for the whole document."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _name_of(section: Any, path: YamlPath) -> str:
    """Return ` (name)` of a list's section that has one."""
    if not path or not isinstance(path[-1], int):
        return ""
    try:
        return f" ({section.name})"
    except _FollowsError:
        return ""
