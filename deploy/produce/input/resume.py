"""Find the place where an interrupted run of an input is resumed: after what it has reported.

A place is stored with a keyed hash of all bytes before it, in the transaction that stores the reports: a file
that was replaced, or changed before that place, is read from its start. A line that stopped the run, or whose
quote did not close, must be mended, and many editors replace the file: then the hash alone decides.
"""

import json
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import click

from deniable.deploy.cli.input_text import printable
from deniable.deploy.produce.input.source import InputFile
from deniable.producers.storage.input_progress import (
    InputProgress,
    forget_progress,
    get_progress,
    set_progress,
)
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import Secret

PURPOSE = b"deniable-input"
DIGEST_BYTES = 32
ANY_INODE = 0  # stored for a file that may be replaced; no file has it


class Place:
    """The position after the last line taken from an input of which no progress is stored.

    Parameters
    ----------
    name : of the input in messages.

    Attributes
    ----------
    bytes_done, lines : before it; a line without its end is not counted yet.
    records : before it, the header included, empty lines only where they are values; unlike lines, they do
        not depend on values.
    key : of stored progress; empty if none is stored.
    """

    key = ""

    def __init__(self, name: str = "the input") -> None:
        self.name = name
        self.bytes_done = 0
        self.lines = 0
        self.records = 0

    @property
    def begins_within_line(self) -> bool:
        """Whether the next bytes are the rest of a line that an interrupted run has reported."""
        return False

    def seek(self) -> None:
        """Read the input from here; without stored progress it is here anyway."""

    def rewind(self) -> None:
        """Read the input from its start."""

    def advance(self, data: bytes, *, is_reported: bool, is_record: bool = True) -> None:
        """Move past lines that became a report, or did not; the last may be a piece of a line.

        An empty line is no record where it cannot be a value.
        """
        self.bytes_done += len(data)
        self.lines += data.count(b"\n")
        self.records += is_record and data.endswith(b"\n")

    def progress(self) -> InputProgress | None:
        """Return the progress to store; None if there is none."""
        return None


class FilePlace(Place):
    """The position in a file.

    Stored places are at line ends. A place after a line without its end is stored only if the line was
    reported, so text appended to it later is not taken for another line.

    Parameters
    ----------
    file : InputFile.
    digest : keyed hash, updated with all bytes before the place.
    key : of stored progress.
    """

    def __init__(self, file: InputFile, digest: blake2b, key: str) -> None:
        super().__init__(printable(str(file.path)))
        self.file = file
        self.key = key
        self._digest = digest
        self._last = b"\n"
        self._line_start: InputProgress | None = (
            None  # while a line's end has not arrived, unless it was reported
        )

    @property
    def begins_within_line(self) -> bool:
        """As Place."""
        return self._last != b"\n"

    def seek(self) -> None:
        """Read the file from here."""
        self.file.seek(self.bytes_done)

    def rewind(self) -> None:
        """Read the file from its start."""
        self.file.seek(0)

    def advance(self, data: bytes, *, is_reported: bool, is_record: bool = True) -> None:
        """As Place."""
        has_end = is_reported or data.endswith(b"\n")
        if not has_end and self._line_start is None:
            self._line_start = self.progress()
        super().advance(data, is_reported=is_reported, is_record=is_record)
        self._digest.update(data)
        if has_end:
            self._line_start = None

    def skip(self, bytes_done: int, records: int) -> None:
        """Move from the start past these bytes and records, if the file has so many."""
        self.rewind()
        while self.bytes_done < bytes_done and (data := self.file.read_up_to(bytes_done - self.bytes_done)):
            self._digest.update(data)
            self.bytes_done += len(data)
            self.lines += data.count(b"\n")
            self._last = data[-1:]
        self.records = records

    def progress(self) -> InputProgress:
        """Return the progress to store."""
        if self._line_start is not None:
            return self._line_start
        return InputProgress(self.file.inode, self.bytes_done, self.records, self._digest.digest())


class ResumePoints:
    """Stored progress of reporting one field of a file to one collection.

    Must not be used while a Producer of this process has the store open: SQLite's locks belong to the
    process.

    Parameters
    ----------
    data_dir : of the store.
    secret : Secret that keys the hashes; without it they reveal nothing about the file.
    collection, field : names.
    path : of the file.
    """

    def __init__(self, data_dir: Path, secret: Secret, collection: str, field: str, path: Path) -> None:
        self.path = path
        self._data_dir = data_dir
        self._secret = secret
        self._names = [collection, field]
        self._keys: set[str] = set()

    def start(self, file: InputFile) -> FilePlace:
        """Return the first place of a file, keyed by its resolved name."""
        key = json.dumps([*self._names, str(self.path.resolve())])
        self._keys.add(key)
        return FilePlace(file, self._secret.function(PURPOSE, DIGEST_BYTES), key)

    def find(self, file: InputFile) -> FilePlace:
        """Return where an interrupted run of this input ended, if the file is the same; else its first place.

        Prints on stderr what an interrupted run means for this one.

        Raises
        ------
        StoreError if the store cannot be used; FeedError if the file cannot be read.
        """
        place = self.start(file)
        with closing(Store(self._data_dir)) as store:
            kept = get_progress(store, place.key)
        if kept is None:
            return place
        place.skip(kept.bytes_done, kept.lines)
        inode = file.inode if kept.inode == ANY_INODE else kept.inode
        if place.progress() != replace(kept, inode=inode):
            click.echo("the input has changed since a run was interrupted: starting at line 1", err=True)
            return self.start(file)
        nothing = ", nothing left" if place.bytes_done >= file.size else ""
        click.echo(f"resuming at line {place.records + 1 + place.begins_within_line}{nothing}", err=True)
        return place

    def expect_mending(self, key: str) -> None:
        """Let the next run resume at a place although the file will have been replaced.

        Parameters
        ----------
        key : of the place; does nothing if none is stored.

        Raises
        ------
        StoreError if the store cannot be used.
        """
        with closing(Store(self._data_dir)) as store, store.transaction():
            if (kept := get_progress(store, key)) is not None:
                set_progress(store, key, replace(kept, inode=ANY_INODE))

    def forget(self) -> None:
        """Forget stored progress, so the next run reads all files from their start.

        Raises
        ------
        StoreError if the store cannot be used.
        """
        with closing(Store(self._data_dir)) as store, store.transaction():
            for key in self._keys:
                forget_progress(store, key)
