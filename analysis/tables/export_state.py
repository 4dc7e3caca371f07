"""Where an export keeps its progress and its unfinished files: beside its folder, which holds tables alone.

polars refuses a folder that has files of several kinds, even hidden ones, and reads unfinished tables.
"""

import os
from pathlib import Path


def state_folder(output: Path) -> Path:
    """Return the folder for progress and unfinished files, in the same file system as the exported ones.

    Beside `output`; within it, hidden, where it is the root of a file system or we may not write beside it.

    Parameters
    ----------
    output : an existing folder.
    """
    output = output.resolve()
    beside = output.parent
    is_beside = beside.stat().st_dev == output.stat().st_dev and os.access(beside, os.W_OK)
    return beside / f".{output.name}.deniable-export" if is_beside else output / ".deniable-export"
