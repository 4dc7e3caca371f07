"""What analysts can mend."""

from importlib import import_module
from types import ModuleType

from deniable.estimators.errors import DeniableError


class AnalysisError(DeniableError, ValueError):
    """A table cannot be read, written or compared. The message says where, what is allowed, and why."""


class WrongArgumentError(AnalysisError):
    """An argument is wrong whatever the data are, by itself or beside the others."""

    exit_status = 2


def needed(module: str, what: str, remedy: str) -> ModuleType:
    """Import a module of an extra.

    Parameters
    ----------
    module : dotted name.
    what : needs it, for the message.
    remedy : the command that installs it.

    Raises
    ------
    AnalysisError if it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise AnalysisError(f"{what} needs {package}: {remedy}") from error


def arrow(what: str) -> ModuleType:
    """Return pyarrow; AnalysisError with the extra to install if it is absent."""
    return needed("pyarrow", what, "pip install 'deniable[analysis]'")
