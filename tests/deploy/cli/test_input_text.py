"""Files that commands are given: their text, or one line on what is wrong."""

import io
from functools import partial
from pathlib import Path

from deniable.deploy.cli.input_text import read_text
from tests.support.messages import PinMessages


class Closed(io.BytesIO):
    """Stdin of a process that was started without one."""

    name = 0

    def read(self, _: int | None = -1) -> bytes:
        raise OSError(9, "Bad file descriptor")


def test_text_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_bytes(b"\xef\xbb\xbfZ\xc3\xbcrich\n")
    with path.open("rb") as stream:
        assert read_text(stream, 11) == "Zürich\n"


def read_at_most_5_bytes(path: Path) -> str:
    with path.open("rb") as stream:
        return read_text(stream, 5)


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    (tmp_path / "long").write_bytes(b"5\n6\n77")
    (tmp_path / "binary").write_bytes(b"5\n\xff\xfe")
    pin_messages(
        {
            "too long": partial(read_at_most_5_bytes, tmp_path / "long"),
            "not UTF-8": partial(read_at_most_5_bytes, tmp_path / "binary"),
            "a file without an end": partial(read_at_most_5_bytes, Path("/dev/zero")),
            "stdin is closed": lambda: read_text(Closed(), 10),
        }
    )
