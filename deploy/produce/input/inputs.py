"""Open what `deniable produce` reads: stdin, a file, or the files that replace each other under one name."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from deniable.deploy.cli.input_text import printable
from deniable.deploy.produce.input.resume import Place, ResumePoints
from deniable.deploy.produce.input.source import InputFile, InputSource, Pipe, open_at_once, successor

STDIN = 0


class InputParameter(click.ParamType):
    """The name of a file or pipe, or `-` for stdin, opened as a stream of bytes."""

    name = "filename"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> BinaryIO:
        """Open the input; do not wait for the writer of a named pipe."""
        if value == "-":
            return click.get_binary_stream("stdin")
        try:
            stream = open(value, "rb", opener=open_at_once)  # noqa: SIM115 - the command's end closes it
        except OSError as error:
            self.fail(f"'{value}': {error.strerror}", param, context)
        if context is not None:
            context.call_on_close(stream.close)
        return stream


def is_file(stream: BinaryIO) -> bool:
    """Whether this is a regular file opened by name, not stdin: only such can be resumed and followed."""
    return stream.fileno() != STDIN and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


class Inputs:
    """Yields sources, one after the other, each with the place to begin at.

    Prints on stderr where an interrupted run is resumed, and when another file has replaced the present one.

    Parameters
    ----------
    stream : open for reading.
    progress : stored progress in a file; None stores none, and begins at line 1.
    follow : whether to wait for more at the end of a file.

    Raises
    ------
    StoreError if the store cannot be used; FeedError if the file cannot be read.
    """

    def __init__(self, stream: BinaryIO, progress: ResumePoints | None, *, follow: bool) -> None:
        self._progress = progress
        self._follow = follow
        self._source: InputSource
        self._place: Place
        if not is_file(stream):
            self._source = Pipe(stream)
            self._place = Place() if stream.fileno() == STDIN else Place(printable(stream.name))
        else:
            file = InputFile(Path(stream.name), stream.fileno(), follow=follow)
            self._source, self._place = (
                file,
                self._place_in(file) if progress is None else progress.find(file),
            )
        self.is_resumed = self._place.bytes_done > 0

    @property
    def key(self) -> str:
        """The key of the present source's stored progress; empty if none is stored."""
        return self._place.key

    def __iter__(self) -> Iterator[tuple[InputSource, Place]]:
        yield self._source, self._place
        while isinstance(self._source, InputFile) and self._follow:
            click.echo(f"the input {self._source.fate}: continuing at line 1 of the new file", err=True)
            with successor(self._source.path) as file:
                self._source, self._place = file, self._place_in(file)
                yield self._source, self._place

    def position(self) -> tuple[int | None, int | None]:
        """Bytes read and present size of the present file; None if it is not a file."""
        if isinstance(self._source, InputFile):
            return self._place.bytes_done, self._source.size
        return None, None

    def _place_in(self, file: InputFile) -> Place:
        """Return the first place of a file."""
        return Place(printable(str(file.path))) if self._progress is None else self._progress.start(file)

    def expect_mending(self) -> None:
        """Let the next run resume at the line where this one ended, although an editor replaced the file."""
        if self._progress is not None:
            self._progress.expect_mending(self.key)

    def forget_progress(self) -> None:
        """Let the next run begin at line 1; StoreError if that cannot be stored."""
        if self._progress is not None:
            self._progress.forget()
