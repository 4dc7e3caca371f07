"""Lines of an input, as bytes with their ends, so that they add up to the input; too long ones in pieces."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

LONGEST_LINE = 1 << 20  # bytes, its end included
TOO_LONG = f"it has more than {LONGEST_LINE} bytes"


class LinePart(NamedTuple):
    """A piece of a line that is passed over.

    Parameters
    ----------
    data : its bytes; none where the input ends.
    fault : what is wrong with the line; empty for one that was taken before, as far as it went then.
    is_last : whether the line ends with it.
    """

    data: bytes
    fault: str
    is_last: bool


class Lines:
    """Takes lines out of what is read; they can be put back.

    Parameters
    ----------
    read : as Source.read.
    within_line : whether it begins in a line that was taken before: the rest of it is passed over.
    """

    def __init__(self, read: Callable[[], bytes | None], *, within_line: bool = False) -> None:
        self._read = read
        self._ready: deque[bytes | LinePart] = deque()
        self._rest = b""
        self._passing = within_line
        self._fault = ""  # of the line that is being passed over
        self._is_over = False

    def take(self) -> bytes | LinePart | None:
        """The next line, or a piece of one that is passed over.

        Empty at the end of the input, for good, whatever is written behind it; None where no whole line has
        come yet. The last line may lack its end.

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
        """Take these again before any other."""
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
