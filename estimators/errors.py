"""The root of all errors that a user or an operator can mend, and the error that a defect ends in."""

import traceback
from pathlib import Path


class DeniableError(Exception):
    """Something that the reader of the message can mend: commands print it in one line, without a traceback.

    Attributes
    ----------
    exit_status : of a command that ends with it. 1; 2 for a wrong option; 3 where starting again mends
        nothing, since stored ledgers refuse it; 4 where most values of an unattended `produce` are unlisted.
    """

    exit_status = 1


class DefectError(DeniableError, RuntimeError):
    """A part of a process ended by an error that nobody foresaw, so the process ends.

    Parameters
    ----------
    what : the part.
    error : that ended it.
    """

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(f"{what} ended by a defect, {place_of(error)}; please report it")


def place_of(error: BaseException) -> str:
    """Return an error's type, and the file and line that raised it; its message might hold payload."""
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    return "".join(
        [type(error).__name__, *(f" in {Path(each.filename).name}:{each.lineno}" for each in frames)]
    )
