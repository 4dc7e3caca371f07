"""Split an input into lines, as bytes with their line ends."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from deniable.deploy.produce.input.source import FeedError

LONGEST_LINE = 16 << 20  # bytes, line end included; of a CSV record, too

GZIP = b"\x1f\x8b"
#: Byte order marks, those of UTF-32 first: one of them begins with one of UTF-16.
ENCODINGS = {
    BOM_UTF32_LE: "UTF-32",
    BOM_UTF32_BE: "UTF-32",
    BOM_UTF16_LE: "UTF-16",
    BOM_UTF16_BE: "UTF-16",
}


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
    begins : name of the input, if reading begins at its start: one in UTF-16 or UTF-32 is refused there.
    """

    def __init__(
        self, read: Callable[[], bytes | None], *, within_line: bool = False, begins: str | None = None
    ) -> None:
        self._read = read
        self._begins = begins
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
        FeedError if the input cannot be read, begins with the mark of another encoding, or as gzip
        does; BrokenLineError if the line is too long.
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
        if self._begins is not None and isinstance(line, bytes):
            _check_encoding(line, self._begins)
            self._begins = None
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


def _check_encoding(first: bytes, name: str) -> None:
    """Raise FeedError if the first line of an input begins as gzip does, or with a mark of UTF-16 or -32."""
    if first.startswith(GZIP):
        raise FeedError(
            f"{name} is compressed by gzip; nothing of it was used: give --input -, and pipe it there, as in "
            "zcat FILE | deniable …"
        )
    for mark, encoding in ENCODINGS.items():
        if first.startswith(mark):
            raise FeedError(
                f"{name} begins with the byte order mark of {encoding}; nothing of it was used: convert it "
                f"to UTF-8 first, such as by iconv -f {encoding} -t UTF-8"
            )


def too_long() -> str:
    """Say that a line or record is too long."""
    return f"it has more than {LONGEST_LINE} bytes; is a quote not closed?"
