"""A folder of this machine, which one export at a time writes to.

Rule: the new content is written under another name in the same file system, forced to disk, and renamed. A
kill before the rename leaves the old file, one after it the new file. What a killed run left unfinished is
deleted by the next one, which holds the lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deniable.analysis.errors import AnalysisError
from deniable.analysis.tables.export_state import state_folder
from deniable.analysis.tables.file_formats import read_table, write_table

UNFINISHED = ".unfinished"


class LocalFolder:
    """An `ExportPlace` on this machine.

    Parameters
    ----------
    output : the folder, locked: see `locked`.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self._state = state_folder(output)

    def __str__(self) -> str:
        """See `ExportPlace`."""
        return str(self._output)

    def names(self) -> list[str]:
        """See `ExportPlace`."""
        found = self._output.glob("collection=*/day=*/*")
        return sorted(path.relative_to(self._output).as_posix() for path in found)

    def read(self, name: str, schema: Any, missing: dict[str, str]) -> Any:
        """See `ExportPlace`."""
        path = self._output / name
        return read_table(path, schema, missing) if path.exists() else None

    def replace(self, name: str, table: Any) -> bool:
        """See `ExportPlace`."""
        path = self._output / name
        if not len(table):
            path.unlink()
            _force(path.parent)
            return True
        unfinished = self._state / f"{path.name}{UNFINISHED}"
        try:
            write_table(table, unfinished, path.suffix[1:])
            _force(unfinished)
            if not path.parent.exists():
                path.parent.mkdir(parents=True)
                _force(path.parent.parent)
                _force(self._output)
            unfinished.rename(path)
            _force(path.parent)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise AnalysisError(
                f"{path} cannot be written: {reason}; the files there are as they were: give it room and "
                "permission, and run this again"
            ) from error
        return True

    def kept(self, name: str) -> bytes | None:
        """See `ExportPlace`."""
        try:
            return (self._state / name).read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, name: str, content: bytes) -> None:
        """See `ExportPlace`."""
        unfinished = self._state / f"{name}{UNFINISHED}"
        unfinished.write_bytes(content)
        _force(unfinished)
        unfinished.rename(self._state / name)


@contextmanager
def locked(output: Path) -> Iterator[LocalFolder]:
    """Create a folder for exports, lock it, and delete what a killed run left unfinished.

    A new folder is deleted if an error ends this before anything was written to it.

    Raises
    ------
    AnalysisError if another process exports to it, or it cannot be written.
    """
    held, is_new = None, not output.exists()
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
        yield LocalFolder(output)
    except BaseException:
        if is_new:
            with suppress(OSError):  # of a folder that is not empty, or was not created
                state_folder(output).rmdir()
                output.rmdir()
        raise
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
