"""Inputs for tests: sources that need no file."""

from collections.abc import Iterable


class Pieces:
    """A source that gives these pieces one after the other, and nothing at their end; None is a silence."""

    def __init__(self, pieces: Iterable[bytes | None]) -> None:
        self._pieces = iter(pieces)

    def read(self) -> bytes | None:
        return next(self._pieces, b"")
