"""Where exported files are: FOLDER/collection=NAME/day=2026-01-31/estimates-FINGERPRINT-START-SPANs.parquet.

Rule 1: a window belongs to one file, which follows from its fingerprint and start alone. So no file but that
one can hold it, whatever ran before, and a second revision replaces the first.
Rule 2: the span of the files is chosen once, for the first file of a fingerprint, and read from the names
from then on: the number of values may change with the candidates, which are not part of the fingerprint.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from deniable.analysis.errors import AnalysisError
from deniable.analysis.export.place import ExportPlace
from deniable.analysis.periods import DAY_SECONDS, moment_of

KINDS = ("estimates", "windows")
MOST_WINDOWS = 1440
MOST_ROWS = 2_000_000

NAME = re.compile(rf"({'|'.join(KINDS)})-([0-9a-f]{{16}})-([0-9]{{8}}T[0-9]{{6}}Z)-([0-9]+)s\.(parquet|csv)")
TIME = "%Y%m%dT%H%M%SZ"


class ExportFile(NamedTuple):
    """A file's name, taken apart.

    Parameters
    ----------
    kind : one of KINDS.
    fingerprint : of the collection, in hex.
    start, seconds : the windows that start in these seconds, unix seconds.
    ending : parquet or csv.
    """

    kind: str
    fingerprint: str
    start: int
    seconds: int
    ending: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.fingerprint}-{moment_of(self.start):{TIME}}-{self.seconds}s.{self.ending}"


def file_named(name: str) -> ExportFile | None:
    """Return the parts of a file's name; None if it is no exported file."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    kind, fingerprint, start, seconds, ending = match.groups()
    moment = datetime.strptime(f"{start}+0000", f"{TIME}%z")
    return ExportFile(kind, fingerprint, int(moment.timestamp()), int(seconds), ending)


def day_folder(collection: str, start: int) -> str:
    """Return the name of the folder of the files of a day, in UTC."""
    return f"{collection_folder(collection)}/day={moment_of(start):%Y-%m-%d}"


def collection_folder(collection: str) -> str:
    """Return the name of the folder of a collection."""
    return f"collection={quote(collection, safe='')}"


def files_of(
    place: ExportPlace, collection: str, kind: str, ending: str, fingerprint: str
) -> dict[str, ExportFile]:
    """Return the files of a collection with a fingerprint, in hex, by name.

    Raises
    ------
    AnalysisError if the place holds files of another kind or format: readers would read both.
    """
    files: dict[str, ExportFile] = {}
    for name in place.names():
        path = PurePosixPath(name)
        found = file_named(path.name)
        if found is None:
            continue
        if found.kind != kind or found.ending != ending:
            raise AnalysisError(
                f"{place} must hold {kind} as {ending} alone, and holds {found.kind} as {found.ending}: "
                "give --output another folder"
            )
        if found.fingerprint == fingerprint and path.parts[0] == collection_folder(collection):
            files[name] = found
    return files


def span_of(
    place: ExportPlace, files: Mapping[str, ExportFile], fingerprint: str, window_seconds: int, rows: int
) -> int:
    """Return the seconds of a file: those of the files there are, or at most a day.

    Parameters
    ----------
    place, fingerprint : of the files, for the error message.
    files : as of `files_of`.
    window_seconds, rows : of a window, for the first file.

    Raises
    ------
    AnalysisError if the files have several spans.
    """
    spans = {file.seconds for file in files.values()}
    if len(spans) > 1:
        raise AnalysisError(
            f"{place} must have files of one span, got {sorted(spans)} s for {fingerprint}: give another "
            "--output"
        )
    return spans.pop() if spans else _first_span(window_seconds, rows)


def _first_span(window_seconds: int, rows: int) -> int:
    """Return the longest part of a day with at most MOST_WINDOWS windows and MOST_ROWS rows."""
    most = max(1, min(MOST_WINDOWS, MOST_ROWS // max(1, rows))) * window_seconds
    return max(each for each in range(1, DAY_SECONDS + 1) if DAY_SECONDS % each == 0 and each <= most)
