"""Files that commands are given: their text, or one line on what is wrong."""

import io
from pathlib import Path

import click
import pytest

from deploy.config.text_files import read_text


class Closed(io.BytesIO):
    """Stdin of a process that was started without one."""

    name = 0

    def read(self, _: int | None = -1) -> bytes:
        raise OSError(9, "Bad file descriptor")


def write(folder: Path, content: bytes) -> Path:
    path = folder / "counts.txt"
    path.write_bytes(content)
    return path


def test_text_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    with write(tmp_path, b"\xef\xbb\xbfZ\xc3\xbcrich\n").open("rb") as stream:
        assert read_text(stream, 11) == "Zürich\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"5\n6\n77", "{} must have at most 5 bytes, got more"),
        (b"5\n\xff\xfe", "{} must be text in UTF-8, byte 2 is not"),
    ],
)
def test_binary_or_too_long_file_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    with write(tmp_path, content).open("rb") as stream, pytest.raises(click.ClickException) as refused:
        read_text(stream, 5)
    assert refused.value.message == expected.format(stream.name)


def test_endless_file_is_refused() -> None:
    with (
        Path("/dev/zero").open("rb") as stream,
        pytest.raises(click.ClickException, match="at most 10 bytes"),
    ):
        read_text(stream, 10)


def test_unreadable_file_is_reported() -> None:
    with pytest.raises(click.ClickException, match=r"^stdin cannot be read: Bad file descriptor$"):
        read_text(Closed(), 10)
