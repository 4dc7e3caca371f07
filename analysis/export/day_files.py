"""Merges windows into files, each of which is whole and holds each of its windows once, after any kill.

Rule: a file is replaced, never changed: the new content is written under another name in the same file
system, forced to disk, and renamed. A kill before the rename leaves the old file, one after it the new file.
What a killed run left unfinished is deleted by the next one, which holds the lock.
"""

import fcntl
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from analysis.errors import AnalysisError, arrow
from analysis.export.layout import ExportFile, day_folder, span_of
from analysis.tables.export_state import state_folder
from analysis.tables.file_formats import read_table, write_table
from analysis.tables.revisions import TableRevision, TableWindow, revisions_of, without
from estimators.collection import Collection

UNFINISHED = ".unfinished"


class ExportProgress(msgspec.Struct, frozen=True):
    """All records appended until then, unix milliseconds, are in the files."""

    until_ms: int


class DayFiles:
    """The files of one collection.

    Parameters
    ----------
    output : the folder, locked: see `locked`.
    collection : of the windows.
    kind, ending : see `ExportFile`.
    schema : of the tables.

    Attributes
    ----------
    windows, files : what was written so far, each once, however often it was replaced.
    others : starts of windows that the run left out, being of other parameters, by fingerprint in hex.
    """

    def __init__(self, output: Path, collection: Collection, kind: str, ending: str, schema: Any) -> None:
        self.output = output
        self.collection = collection
        self.kind = kind
        self.ending = ending
        self.schema = schema
        self.fingerprint = f"{collection.fingerprint:016x}"
        rows = collection.cohorts if kind == "windows" else collection.entries + 1
        self._state = state_folder(output)
        self.seconds = span_of(
            output, collection.name, kind, ending, self.fingerprint, collection.window_seconds, rows
        )
        self.windows: set[TableWindow] = set()
        self.files: set[Path] = set()
        self.others: dict[str, set[int]] = {}

    def merge(self, table: Any) -> None:
        """Write the windows of a table, whose revisions are newer than those in the files or equal.

        Parameters
        ----------
        table : pyarrow.Table by `schema`, each window once.

        Raises
        ------
        OSError; AnalysisError if a file there cannot be read.
        """
        revisions = revisions_of(table)
        by_file: defaultdict[int, dict[TableWindow, TableRevision]] = defaultdict(dict)
        for window, revision in revisions.items():
            by_file[window[1] // 1_000_000 // self.seconds * self.seconds][window] = revision
        spans = table["window_start"].cast("int64").to_numpy() // 1_000_000 // self.seconds * self.seconds
        for start in sorted(by_file):
            part = table.filter(arrow("an export").array(spans == start))
            self._merge_file(start, part, by_file[start])

    def _merge_file(self, start: int, part: Any, new: dict[TableWindow, TableRevision]) -> None:
        name = str(ExportFile(self.kind, self.fingerprint, start, self.seconds, self.ending))
        path = day_folder(self.output, self.collection.name, start) / name
        if path.exists():
            former = read_table(path, self.schema, {"collection": self.collection.name})
            old = revisions_of(former)
            unneeded = {window: None for window, revision in new.items() if self._has(old, window, revision)}
            if len(unneeded) == len(new):
                return
            part = without(part, unneeded)
            new = {window: revision for window, revision in new.items() if window not in unneeded}
            part = arrow("an export").concat_tables([without(former, new), part]).unify_dictionaries()
        starts = part["window_start"].cast("int64").to_numpy()
        self._replace(path, part.take(np.argsort(starts, kind="stable")).drop_columns(["collection"]))
        self.windows.update(new)
        self.files.add(path)

    def _has(
        self, old: dict[TableWindow, TableRevision], window: TableWindow, revision: TableRevision
    ) -> bool:
        """Whether a file has this revision or a newer one. Of final windows the last one in the log wins."""
        if window not in old:
            return False
        return old[window] == revision if self.kind == "windows" else old[window] >= revision

    def _replace(self, path: Path, table: Any) -> None:
        unfinished = self._state / f"{path.name}{UNFINISHED}"
        write_table(table, unfinished, self.ending)
        _force(unfinished)
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
            _force(path.parent.parent)
            _force(self.output)
        unfinished.rename(path)
        _force(path.parent)

    def progress(self) -> int:
        """Return until when, unix milliseconds, all records are in the files; 0 if that is not known."""
        try:
            return msgspec.json.decode(self._progress_file().read_bytes(), type=ExportProgress).until_ms
        except (FileNotFoundError, msgspec.DecodeError):
            return 0

    def keep_progress(self, until_ms: int) -> None:
        """Store the progress; call it when all records until then are merged."""
        file = self._progress_file()
        unfinished = file.with_name(f"{file.name}{UNFINISHED}")
        unfinished.write_bytes(msgspec.json.encode(ExportProgress(until_ms)))
        _force(unfinished)
        unfinished.rename(file)

    def _progress_file(self) -> Path:
        return self._state / f"progress-{self.kind}-{self.fingerprint}-{self.ending}.json"


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Create a folder for exports, lock it, and delete what a killed run left unfinished.

    Raises
    ------
    AnalysisError if another process exports to it, or it cannot be written.
    """
    held = None
    try:
        try:
            output.mkdir(parents=True, exist_ok=True)
            held = os.open(output, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state = state_folder(output)
            state.mkdir(exist_ok=True)
            for path in state.glob(f"*{UNFINISHED}"):
                path.unlink()
        except BlockingIOError:
            raise AnalysisError(
                f"another process exports to {output}: wait for its end, or give another folder"
            ) from None
        except OSError as error:
            raise AnalysisError(
                f"{output} cannot be written: {error.strerror}; give another folder"
            ) from error
        yield
    finally:
        if held is not None:
            os.close(held)


def _force(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
