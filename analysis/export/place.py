"""Where exported files are: a folder of this machine, or a prefix of a bucket.

Rule: a file is replaced, never changed: a kill leaves the old file whole, or the new one.
"""

from typing import Any, Protocol


class ExportPlace(Protocol):
    """Files by name, relative to the place, and what exports keep beside them, which no reader takes for one.

    All methods raise AnalysisError with a remedy, or OSError, if the place cannot be read or written.
    """

    def __str__(self) -> str:
        """Return its path or URL, as given."""

    def names(self) -> list[str]:
        """Return the names of the files `collection=NAME/day=DAY/…`, sorted."""

    def read(self, name: str, schema: Any, missing: dict[str, str]) -> Any:
        """Return the pyarrow.Table of a file, None if there is none; arguments as of `read_table`."""

    def replace(self, name: str, table: Any) -> bool:
        """Create the file, or replace what was read last; without rows it may be deleted instead.

        Returns
        -------
        False if it has changed since it was read, as by the last request of a killed export: then read it and
        merge again.
        """

    def kept(self, name: str) -> bytes | None:
        """Return what was kept beside the files under a name, None if there is nothing."""

    def keep(self, name: str, content: bytes) -> None:
        """Keep something beside the files, in place of what was kept under the name."""
