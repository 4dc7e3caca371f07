"""Merges windows into files, each of which is whole and holds each of its windows once, after any kill."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from deniable.aggregator.history.periods import Period
from deniable.analysis.errors import AnalysisError, arrow
from deniable.analysis.export.layout import ExportFile, day_folder, file_named, files_of, span_of
from deniable.analysis.export.place import ExportPlace
from deniable.analysis.tables.revisions import TableRevision, TableWindow, revisions_of, without
from deniable.estimators.collection import Collection

NOTHING: Mapping[TableWindow, TableRevision] = MappingProxyType({})


class ExportProgress(msgspec.Struct, frozen=True):
    """All records appended until then, unix milliseconds, are in the files.

    Parameters
    ----------
    until_ms : then.
    files : the names of all files of the collection and its parameters; empty in records of older versions.
    """

    until_ms: int
    files: frozenset[str] = frozenset()


class DayFiles:
    """The files of one collection.

    Parameters
    ----------
    place : of the files.
    collection : of the windows.
    kind, ending : see `ExportFile`.
    schema : of the tables.

    Attributes
    ----------
    present : names of the files there are.
    windows, files : what was written so far, files by name, each once, however often it was replaced.
    withdrawn : windows whose rows were removed.
    others : starts of windows that the run left out, being of other parameters, by fingerprint in hex.
    """

    def __init__(
        self, place: ExportPlace, collection: Collection, kind: str, ending: str, schema: Any
    ) -> None:
        self.place = place
        self.collection = collection
        self.kind = kind
        self.ending = ending
        self.schema = schema
        self.fingerprint = f"{collection.fingerprint:016x}"
        rows = collection.cohorts if kind == "windows" else collection.entries + 1
        files = files_of(place, collection.name, kind, ending, self.fingerprint)
        self.seconds = span_of(place, files, self.fingerprint, collection.window_seconds, rows)
        self.present = set(files)
        self.windows: set[TableWindow] = set()
        self.withdrawn: set[TableWindow] = set()
        self.files: set[str] = set()
        self.others: dict[str, set[int]] = {}

    def merge(self, table: Any, withdrawn: Mapping[TableWindow, TableRevision] = NOTHING) -> None:
        """Write the windows of a table, whose revisions are newer than those in the files or equal.

        Parameters
        ----------
        table : pyarrow.Table by `schema`, each window once.
        withdrawn : windows, none of the table's, whose newest revision has no rows: their rows are removed,
            and files without rows deleted.

        Raises
        ------
        OSError; AnalysisError if a file there cannot be read or is gone, or the place not be written.
        """
        revisions = revisions_of(table) | dict(withdrawn)
        by_file: defaultdict[int, dict[TableWindow, TableRevision]] = defaultdict(dict)
        for window, revision in revisions.items():
            by_file[window[1] // 1_000_000 // self.seconds * self.seconds][window] = revision
        spans = table["window_start"].cast("int64").to_numpy() // 1_000_000 // self.seconds * self.seconds
        for start in sorted(by_file):
            part = table.filter(arrow("an export").array(spans == start))
            while not self._merge_file(start, part, by_file[start], withdrawn):
                pass

    def _merge_file(
        self,
        start: int,
        part: Any,
        new: dict[TableWindow, TableRevision],
        withdrawn: Mapping[TableWindow, TableRevision],
    ) -> bool:
        """Merge into one file; False if it was replaced since it was read."""
        name = self._name_of(start)
        former = self._read(name)
        if former is None and name in self.present:
            # What else it held is nowhere; the next run finds it lost and reads the whole topic again.
            raise AnalysisError(
                f"{self.place}: {name} was deleted while this export ran: run it again, without a period"
            )
        if former is None and not len(part):
            return True  # withdrawn before it was written
        if former is not None:
            old = revisions_of(former)
            unneeded = {
                window: None
                for window, revision in new.items()
                if (self._lacks if window in withdrawn else self._has)(old, window, revision)
            }
            if len(unneeded) == len(new):
                return True
            part = without(part, unneeded)
            new = {window: revision for window, revision in new.items() if window not in unneeded}
            part = arrow("an export").concat_tables([without(former, new), part]).unify_dictionaries()
        starts = part["window_start"].cast("int64").to_numpy()
        ordered = part.take(np.argsort(starts, kind="stable")).drop_columns(["collection"])
        if not self.place.replace(name, ordered):
            return False
        for names in (self.files, self.present):
            (names.add if len(part) else names.discard)(name)
        gone = new.keys() & withdrawn.keys()
        self.windows = (self.windows | new.keys()) - gone
        self.withdrawn = (self.withdrawn - new.keys()) | gone
        return True

    def table_beside(self, window_start: int) -> Any:
        """Return the pyarrow.Table of the file that a window, unix seconds, belongs to; empty without a file.

        Raises
        ------
        OSError; AnalysisError if the file cannot be read.
        """
        table = self._read(self._name_of(window_start // self.seconds * self.seconds))
        return self.schema.empty_table() if table is None else table

    def windows_beside(self, window_start: int) -> set[int]:
        """Return the starts, unix seconds, of the windows in that file."""
        return {start // 1_000_000 for _, start in revisions_of(self.table_beside(window_start))}

    def windows_within(self, period: Period) -> set[int]:
        """Return the starts, unix seconds, of the windows in the files that start in a period."""
        files = [file for name in self.present if (file := file_named(PurePosixPath(name).name)) is not None]
        found: set[int] = set()
        for file in files:
            if file.start < period.end and period.start < file.start + self.seconds:
                found |= self.windows_beside(file.start)
        return {start for start in found if period.start <= start < period.end}

    def _name_of(self, start: int) -> str:
        file = ExportFile(self.kind, self.fingerprint, start, self.seconds, self.ending)
        return f"{day_folder(self.collection.name, start)}/{file}"

    def _read(self, name: str) -> Any:
        return self.place.read(name, self.schema, {"collection": self.collection.name})

    def _has(
        self, old: dict[TableWindow, TableRevision], window: TableWindow, revision: TableRevision
    ) -> bool:
        """Whether a file has this revision or a newer one. Of final windows the last one in the log wins."""
        if window not in old:
            return False
        return old[window] == revision if self.kind == "windows" else old[window] >= revision

    def _lacks(
        self, old: dict[TableWindow, TableRevision], window: TableWindow, revision: TableRevision
    ) -> bool:
        """Whether a file has no rows of a window that is withdrawn, or those of a newer revision."""
        return window not in old or (self.kind == "estimates" and old[window] > revision)

    def progress(self) -> int:
        """Return until when, unix milliseconds, all records are in the files; 0 if that is not known."""
        return self._progress().until_ms

    def forget_if_lost(self) -> list[str]:
        """Return the names of files that were there and are gone; if there are any, the progress is 0.

        It is stored, so that a run that is killed before it has written them again is no loss.
        """
        lost = sorted(self._progress().files - self.present)
        if lost:
            self.keep_progress(0)
        return lost

    def _progress(self) -> ExportProgress:
        try:
            kept = self.place.kept(self._progress_name())
            return ExportProgress(0) if kept is None else msgspec.json.decode(kept, type=ExportProgress)
        except msgspec.DecodeError:
            return ExportProgress(0)

    def keep_progress(self, until_ms: int) -> None:
        """Store the progress; call it when all records until then are merged."""
        content = msgspec.json.encode(ExportProgress(until_ms, frozenset(self.present)))
        self.place.keep(self._progress_name(), content)

    def _progress_name(self) -> str:
        return f"progress-{self.kind}-{self.fingerprint}-{self.ending}.json"
