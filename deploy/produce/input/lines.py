"""Split an input into lines, as bytes with their line ends."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

LONGEST_LINE = 16 << 20  # bytes, line end included; of a CSV record, too


class BrokenLineError(Exception):
    """A value may have caused the shape of a line, so it can be neither skipped nor used: the run stops.

    Its message says what is wrong and what to do, and never quotes the line.
    """


class LinePart(NamedTuple):
    """A piece of a line whose beginning an earlier run took; empty at the end of the input."""

    data: bytes


class Lines:
    """Takes lines from a source; they can be put back.

    Parameters
    ----------
    read : reads a chunk, like InputSource.read.
    within_line : whether reading begins within a line that an earlier run took: its rest is skipped.
    """

    def __init__(self, read: Callable[[], bytes | None], *, within_line: bool = False) -> None:
        self._read = read
        self._ready: deque[bytes | LinePart] = deque()
        self._rest: list[bytes] = []  # pieces of a line whose end has not arrived
        self._rest_bytes = 0
        self._passing = within_line
        self._is_over = False

    def take(self) -> bytes | LinePart | None:
        """Take the next line, or a piece of a skipped one.

        Returns an empty line at the end of the input, and from then on, whatever is appended; None while no
        whole line has arrived. The last line may lack its line end.

        Raises
        ------
        FeedError if the input cannot be read; BrokenLineError if the line is too long.
        """
        while not self._ready:
            if self._is_over:
                return b""
            data = self._read()
            if data is None:
                return None
            if data:
                self._split(data)
            else:
                self._is_over = True
                self._ready.append(b"".join(self._rest))
        line = self._ready.popleft()
        if isinstance(line, bytes) and len(line) > LONGEST_LINE:
            raise BrokenLineError(too_long())
        return line

    def put_back(self, lines: Iterable[bytes | LinePart]) -> None:
        """Put lines back, to be taken before any other."""
        self._ready.extendleft(reversed(list(lines)))

    def _split(self, data: bytes) -> None:
        if self._passing:
            passed, end, data = data.partition(b"\n")
            self._ready.append(LinePart(passed + end))
            self._passing = not end
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest.clear()
            self._rest_bytes = 0
            self._ready.extend([line + b"\n" for line in lines])
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
        if self._rest_bytes > LONGEST_LINE:  # `take` refuses it
            self._ready.append(b"".join(self._rest))


def too_long() -> str:
    """Say that a line or record is too long."""
    return f"it has more than {LONGEST_LINE} bytes; is a quote not closed?"
