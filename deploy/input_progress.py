"""Where an input is resumed: behind what an interrupted run has reported of it.

A place is kept by keyed hash of all that precedes it, in the transaction that stores the reports: a file that
was replaced or changed there is read from its start.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import click

from deploy.input_source import InputFile
from producers.progress import Progress, forget_progress, get_progress
from producers.secret import Secret
from producers.store import Store

PURPOSE = b"deniable-input"
DIGEST_BYTES = 32


class Place:
    """Behind the last record that was taken from an input that cannot be read twice.

    Attributes
    ----------
    lines : that precede it.
    """

    def __init__(self) -> None:
        self.lines = 0

    def seek(self) -> None:
        """Let the input be read from here; one that cannot be read twice is here anyway."""

    def rewind(self) -> None:
        """Let the input be read from its start."""

    def advance(self, lines: Sequence[bytes]) -> None:
        """Go behind these."""
        self.lines += len(lines)

    def progress(self) -> Progress | None:
        """What is to be kept of it, if anything."""
        return None


class FilePlace(Place):
    """The same of a file.

    Parameters
    ----------
    file : InputFile.
    digest : keyed hash, to be fed with all that precedes the place.

    Attributes
    ----------
    bytes_done, lines : how much that is.
    """

    def __init__(self, file: InputFile, digest: blake2b) -> None:
        super().__init__()
        self.file = file
        self.digest = digest
        self.bytes_done = 0

    def seek(self) -> None:
        """Let the file be read from here."""
        self.file.seek(self.bytes_done)

    def rewind(self) -> None:
        """Let the file be read from its start."""
        self.file.seek(0)

    def advance(self, lines: Sequence[bytes]) -> None:
        """Go behind these."""
        super().advance(lines)
        for line in lines:
            self.digest.update(line)
            self.bytes_done += len(line)

    def skip(self, bytes_done: int, lines: int) -> None:
        """Go from the start behind so many bytes, if there are so many, that are so many lines."""
        self.rewind()
        while self.bytes_done < bytes_done and (data := self.file.read_up_to(bytes_done - self.bytes_done)):
            self.digest.update(data)
            self.bytes_done += len(data)
        self.lines = lines

    def progress(self) -> Progress:
        """What is to be kept of it."""
        return Progress(self.file.inode, self.bytes_done, self.lines, self.digest.digest())


class InputProgress:
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
        self.key = json.dumps([collection, field, str(path.absolute())])
        self._data_dir = data_dir
        self._secret = secret

    def start(self, file: InputFile) -> FilePlace:
        """The first place of a file."""
        return FilePlace(file, self._secret.function(PURPOSE, DIGEST_BYTES))

    def find(self, file: InputFile) -> FilePlace:
        """Where an interrupted run of this input was, if the file is still the same; else its first place.

        Says on stderr what an interrupted run means for this one.

        Raises
        ------
        StoreError if the store cannot be used; FeedError if the file cannot be read.
        """
        with closing(Store(self._data_dir)) as store:
            kept = get_progress(store, self.key)
        if kept is None:
            return self.start(file)
        place = self.start(file)
        place.skip(kept.bytes_done, kept.lines)
        if place.progress() != kept:
            click.echo("the input is not what a run was interrupted in: starting at line 1", err=True)
            return self.start(file)
        click.echo(f"resuming at line {place.lines + 1}", err=True)
        return place

    def forget(self) -> None:
        """Let the next run read the input from its start.

        Raises
        ------
        StoreError if the store cannot be used.
        """
        with closing(Store(self._data_dir)) as store, store.transaction():
            forget_progress(store, self.key)
