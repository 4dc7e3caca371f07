"""What all mappings of the collection file share, and what the types of their fields are made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import msgspec


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of the file. The types of its fields say what each allows by itself.

    A method whose name begins with `check_` says what they allow together: it raises ValueError, and the
    message begins with the name of the field to blame, if there is one.
    """

    #: False if a value may be a secret in the wrong place: then no message shows one.
    shows_values: ClassVar[bool] = True
    #: Fields that only environment variables may set.
    only_environment: ClassVar[Sequence[str]] = ()
    #: What to say last of a wrong field.
    remedy: ClassVar[str] = ""
    #: What to say of names that are no fields.
    not_fields: ClassVar[Mapping[str, str]] = {}


@dataclass(frozen=True)
class ListKind:
    """The type of a list.

    Parameters
    ----------
    item : type of an element.
    shortest, longest : numbers of elements, both included; None for any.
    """

    item: Any
    shortest: int | None
    longest: int | None

    def allows(self, length: int) -> bool:
        """Whether a list may be that long."""
        return (self.shortest or 0) <= length and (self.longest is None or length <= self.longest)


def known_fields(section: Any) -> tuple[str, ...]:
    """Return the names that a section may have in the file, the tag first."""
    tag = section.__struct_config__.tag_field
    names = section.__struct_fields__ if tag is None else (tag, *section.__struct_fields__)
    return tuple(name for name in names if name not in section.only_environment)


def members(kind: Any) -> Iterator[Any]:
    """Yield the types of a union, or the only one."""
    if get_origin(kind) in (Union, UnionType):
        for member in get_args(kind):
            yield from members(member)
    else:
        yield kind


def bare(kind: Any) -> Any:
    """Return a type without its Meta."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def metas_of(kind: Any) -> tuple[msgspec.Meta, ...]:
    """Return what is said of a type beside the type itself."""
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def sections_in(kind: Any) -> list[type[Section]]:
    """Return the sections of a union."""
    found = []
    for member in members(bare(kind)):
        one = bare(member)
        if isinstance(one, type) and issubclass(one, Section):
            found.append(one)
    return found


def list_in(kind: Any) -> ListKind | None:
    """Return the list of a union; None if it has none."""
    for member in members(kind):
        if get_origin(bare(member)) is list:
            meta = next(iter(metas_of(member)), msgspec.Meta())
            return ListKind(get_args(bare(member))[0], meta.min_length, meta.max_length)
    return None


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """Return the value of a field that is absent."""
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def nested(section: type[Section]) -> Iterator[type[Section]]:
    """Yield a section and those within it."""
    yield section
    for field in msgspec.structs.fields(section):
        listed = list_in(field.type)
        for inner in sections_in(field.type if listed is None else listed.item):
            yield from nested(inner)


def may_be_shown(section: type[Section]) -> bool:
    """Whether messages may show a value in place of the section: none within it hides its own."""
    return all(inner.shows_values for inner in nested(section))
