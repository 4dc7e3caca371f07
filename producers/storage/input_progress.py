"""Store how far input files were read, so that an interrupted run sends no line twice."""

from dataclasses import dataclass

from deniable.producers.storage.store import Store


@dataclass(frozen=True)
class InputProgress:
    """The part of one input file that was reported.

    Parameters
    ----------
    inode : of the file, in [0, 2**63).
    bytes_done : length of that part.
    lines : in that part; a record counts as one, whatever line ends it contains.
    digest : of that part.
    """

    inode: int
    bytes_done: int
    lines: int
    digest: bytes


def get_progress(store: Store, path: str) -> InputProgress | None:
    """Return the progress that an interrupted run stored for this file, or None."""
    rows = store.rows("SELECT inode, bytes_done, lines, digest FROM inputs WHERE path = ?", path)
    return InputProgress(*rows[0]) if rows else None


def set_progress(store: Store, path: str, progress: InputProgress) -> None:
    """Store progress in the transaction that stores the reports of these lines."""
    store.rows(
        "REPLACE INTO inputs VALUES (?, ?, ?, ?, ?)",
        path,
        progress.inode,
        progress.bytes_done,
        progress.lines,
        progress.digest,
    )


def forget_progress(store: Store, path: str) -> None:
    """Forget progress, so the next run sends the file from its start."""
    store.rows("DELETE FROM inputs WHERE path = ?", path)
