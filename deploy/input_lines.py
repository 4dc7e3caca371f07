"""Lines of an input, as bytes with their ends, so that they add up to the input."""

from collections import deque
from collections.abc import Callable, Iterable

from deploy.input_errors import FeedError

LONGEST_LINE = 1 << 20  # bytes


class Lines:
    """Takes lines out of what is read; they can be put back.

    Parameters
    ----------
    read : as Source.read.
    number : of the first line.
    """

    def __init__(self, read: Callable[[], bytes | None], number: int = 1) -> None:
        self._read = read
        self._next = number
        self._ready: deque[bytes] = deque()
        self._rest = b""

    def take(self) -> bytes | None:
        """The next line; empty at the end of the input, None where no whole one has come yet.

        Raises
        ------
        FeedError if the input cannot be read, or a line is longer than LONGEST_LINE: none is ever held whole.
        """
        while not self._ready:
            data = self._read()
            if data is None:
                return None
            if not data:
                last, self._rest = self._rest, b""
                return last
            self._split(data)
        return self._ready.popleft()

    def put_back(self, lines: Iterable[bytes]) -> None:
        """Take these again before any other."""
        self._ready.extendleft(reversed(list(lines)))

    def _split(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._ready.extend(line + b"\n" for line in lines)
        self._next += len(lines)
        if len(self._rest) > LONGEST_LINE:
            raise FeedError(
                f"line {self._next} of the input must have at most {LONGEST_LINE} bytes, got more"
            )
