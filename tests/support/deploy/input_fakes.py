"""Inputs for tests: sources that need no file."""

from collections.abc import Iterable


class Pieces:
    """A source that returns these pieces in order, then the end of input; None means no data yet."""

    def __init__(self, pieces: Iterable[bytes | None]) -> None:
        self._pieces = iter(pieces)

    def read(self) -> bytes | None:
        return next(self._pieces, b"")
