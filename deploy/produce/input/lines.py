"""Split an input into lines, as bytes with their line ends; too long lines come in pieces."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

LONGEST_LINE = 1 << 20  # bytes, line end included
TOO_LONG = f"it has more than {LONGEST_LINE} bytes"


class LinePart(NamedTuple):
    """A piece of a skipped line.

    Parameters
    ----------
    data : its bytes; empty at the end of the input.
    fault : what is wrong with the line; empty if its beginning was taken by an earlier run.
    is_last : whether the line ends with it.
    """

    data: bytes
    fault: str
    is_last: bool


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
        self._rest = b""
        self._passing = within_line
        self._fault = ""  # of the line being skipped
        self._is_over = False

    def take(self) -> bytes | LinePart | None:
        """Take the next line, or a piece of a skipped one.

        Returns an empty line at the end of the input, and from then on, whatever is appended; None while no
        whole line has arrived. The last line may lack its line end.

        Raises
        ------
        FeedError if the input cannot be read.
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
                self._end()
        return self._ready.popleft()

    def put_back(self, lines: Iterable[bytes | LinePart]) -> None:
        """Put lines back, to be taken before any other."""
        self._ready.extendleft(reversed(list(lines)))

    def _split(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take_line(line + b"\n")
        if self._rest and (self._passing or len(self._rest) > LONGEST_LINE):
            self._pass(self._rest, is_last=False)
            self._rest = b""

    def _take_line(self, line: bytes) -> None:
        if self._passing or len(line) > LONGEST_LINE:
            self._pass(line, is_last=True)
        else:
            self._ready.append(line)

    def _pass(self, data: bytes, *, is_last: bool) -> None:
        if not self._passing:
            self._fault = TOO_LONG
        self._ready.append(LinePart(data, self._fault, is_last))
        self._passing = not is_last

    def _end(self) -> None:
        self._is_over = True
        if self._passing:
            self._pass(b"", is_last=True)
        elif self._rest:
            self._ready.append(self._rest)
