"""Where an input is resumed: behind what an interrupted run has reported of it.

A place is kept by keyed hash of all that precedes it, in the transaction that stores the reports: a file that
was replaced or changed there is read from its start.
"""

import json
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import click

from deploy.produce.input.source import InputFile
from producers.randomization.secret import Secret
from producers.storage.input_progress import InputProgress, forget_progress, get_progress
from producers.storage.store import Store

PURPOSE = b"deniable-input"
DIGEST_BYTES = 32


class Place:
    """Behind the last line that was taken from an input that cannot be read twice.

    Attributes
    ----------
    bytes_done, lines : that precede it; a line without its end is not counted yet.
    key : by which progress is kept; empty where none is.
    """

    key = ""

    def __init__(self) -> None:
        self.bytes_done = 0
        self.lines = 0

    @property
    def begins_within_line(self) -> bool:
        """Whether the input begins here with the rest of a line that an interrupted run has reported."""
        return False

    def seek(self) -> None:
        """Let the input be read from here; one that cannot be read twice is here anyway."""

    def rewind(self) -> None:
        """Let the input be read from its start."""

    def advance(self, data: bytes, *, is_reported: bool) -> None:
        """Go behind these lines, which became a report or did not; the last may be a piece of a line."""
        self.bytes_done += len(data)
        self.lines += data.count(b"\n")

    def progress(self) -> InputProgress | None:
        """What is to be kept of it, if anything."""
        return None


class FilePlace(Place):
    """The same of a file.

    What is kept of it is at the end of a line: behind one without an end only if that was reported, so that
    what is written behind that is not taken for another line.

    Parameters
    ----------
    file : InputFile.
    digest : keyed hash, to be fed with all that precedes the place.
    key : as an attribute.
    """

    def __init__(self, file: InputFile, digest: blake2b, key: str) -> None:
        super().__init__()
        self.file = file
        self.key = key
        self._digest = digest
        self._last = b"\n"
        self._line_start: InputProgress | None = (
            None  # of a line whose end has not come, unless it was reported
        )

    @property
    def begins_within_line(self) -> bool:
        """As Place."""
        return self._last != b"\n"

    def seek(self) -> None:
        """Let the file be read from here."""
        self.file.seek(self.bytes_done)

    def rewind(self) -> None:
        """Let the file be read from its start."""
        self.file.seek(0)

    def advance(self, data: bytes, *, is_reported: bool) -> None:
        """As Place."""
        has_end = is_reported or data.endswith(b"\n")
        if not has_end and self._line_start is None:
            self._line_start = self.progress()
        super().advance(data, is_reported=is_reported)
        self._digest.update(data)
        if has_end:
            self._line_start = None

    def skip(self, bytes_done: int, lines: int) -> None:
        """Go from the start behind so many bytes, if there are so many, that are so many lines."""
        self.rewind()
        while self.bytes_done < bytes_done and (data := self.file.read_up_to(bytes_done - self.bytes_done)):
            self._digest.update(data)
            self.bytes_done += len(data)
            self._last = data[-1:]
        self.lines = lines

    def progress(self) -> InputProgress:
        """What is to be kept of it."""
        if self._line_start is not None:
            return self._line_start
        return InputProgress(self.file.inode, self.bytes_done, self.lines, self._digest.digest())


class ResumePoints:
    """What is kept of one input: of what is reported from one field of a file to one collection.

    Not to be asked while a Producer of this process has the store open: SQLite's locks are the process's.

    Parameters
    ----------
    data_dir : of the store.
    secret : Secret that keys the hashes; without it they tell nothing of the file.
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
        """The first place of a file, under the name that it has now where no link leads any further."""
        key = json.dumps([*self._names, str(self.path.resolve())])
        self._keys.add(key)
        return FilePlace(file, self._secret.function(PURPOSE, DIGEST_BYTES), key)

    def find(self, file: InputFile) -> FilePlace:
        """Where an interrupted run of this input was, if the file is still the same; else its first place.

        Says on stderr what an interrupted run means for this one.

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
        if place.progress() != kept:
            click.echo("the input is not what a run was interrupted in: starting at line 1", err=True)
            return self.start(file)
        click.echo(f"resuming at line {place.lines + 1 + place.begins_within_line}", err=True)
        return place

    def forget(self) -> None:
        """Let the next run read from their start all files that were begun.

        Raises
        ------
        StoreError if the store cannot be used.
        """
        with closing(Store(self._data_dir)) as store, store.transaction():
            for key in self._keys:
                forget_progress(store, key)
