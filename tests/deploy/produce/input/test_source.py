"""Bytes of pipes and files as they come, whatever becomes of the file."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from deniable.deploy.produce.input.source import InputFile, Pipe, successor
from deniable.deploy.produce.timing import RunTiming
from tests.support.messages import PinMessages

QUICK = RunTiming(poll=0.001, linger=0.05)


@contextmanager
def opened(path: Path, *, follow: bool = True) -> Iterator[InputFile]:
    with path.open("rb") as stream:
        yield InputFile(path, stream.fileno(), follow=follow, timing=QUICK)


def test_pipe_gives_what_comes_a_silence_and_its_end() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream:
        pipe = Pipe(stream, QUICK)
        assert pipe.read() is None
        os.write(writer, b"AA\nB")
        assert pipe.read() == b"AA\nB"
        os.close(writer)
        assert pipe.read() == b""


def test_a_file_ends_unless_it_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"AA\n")
    with opened(path, follow=False) as file:
        assert [file.read(), file.read()] == [b"AA\n", b""]
    with opened(path) as file, path.open("ab") as writer:
        assert [file.read(), file.read()] == [b"AA\n", None]
        writer.write(b"B6")
        writer.flush()
        assert [file.read(), file.read()] == [b"B6", None]
        assert (file.size, file.inode) == (5, path.stat().st_ino)


def test_a_file_that_becomes_shorter_ends(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"AA\nB6\n")
    with opened(path) as file:
        assert file.read() == b"AA\nB6\n"
        path.write_bytes(b"9E\n")
        assert (file.read(), file.fate) == (b"", "was truncated")


def test_file_that_is_replaced_is_read_to_its_end(tmp_path: Path) -> None:
    """What its writer adds after the rename is not lost, and the name may be free for a while."""
    path = tmp_path / "lines"
    path.write_bytes(b"AA\n")
    with opened(path) as file, path.open("ab") as writer:
        assert file.read() == b"AA\n"
        path.rename(tmp_path / "lines.1")
        assert file.read() is None
        path.write_bytes(b"9E\n")
        assert file.read() is None
        writer.write(b"B6\n")
        writer.flush()
        assert file.read() == b"B6\n"
        time.sleep(QUICK.linger)
        assert (file.read(), file.fate) == (b"", "was replaced")
    with successor(path, QUICK) as file:
        assert file.read() == b"9E\n"


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    def read(path: Path) -> None:
        with successor(path) as file:
            file.read()

    with (tmp_path / "written").open("wb") as stream:
        pin_messages(
            {
                "a folder": partial(read, tmp_path),
                "a pipe that is not open for reading": Pipe(stream, QUICK).read,
                "a file that is not open for reading": InputFile(
                    tmp_path / "written", stream.fileno(), follow=False
                ).read,
                "a file in place of a folder": partial(read, tmp_path / "written" / "x"),
            }
        )
