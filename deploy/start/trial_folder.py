"""The folder that `deniable dev` keeps beside the collection file."""

import shutil
from pathlib import Path

import click

from deniable.deploy.broker.locked_folder import FolderError, HeldFolder, lock
from deniable.deploy.broker.process import LOG_NAME
from deniable.estimators.errors import DeniableError

WORKER_LOG = "worker.log"
RELAY_LOG = "relay.log"
EDGE_LOG = "edge.log"
#: All that processes write there. Nothing else is deleted: --data-dir may name any folder.
CONTENT = ("kafka", "tmp", "server.properties", LOG_NAME, WORKER_LOG, RELAY_LOG, EDGE_LOG)


class AlreadyRunsError(DeniableError, RuntimeError):
    """Another `deniable dev` uses the folder."""


def refuse_second(folder: Path) -> None:
    """Raise AlreadyRunsError if a `deniable dev` runs with this folder."""
    if not (folder / "lock").exists():
        return
    try:
        lock(folder, wait=False).close()
    except FolderError as error:
        if isinstance(error.__cause__, OSError):
            raise
        raise AlreadyRunsError(
            f"deniable dev already runs with the data in {folder}: use it, or end it with Ctrl-C in its "
            "terminal"
        ) from None


def empty(folder: Path) -> None:
    """Delete Kafka's data and the logs, after saying so.

    Raises
    ------
    FolderError if a process uses the folder, or something cannot be deleted.
    """
    if not folder.exists():
        return
    click.echo(
        f"emptying {folder}: the reports, counts and estimates that its Kafka holds are deleted; what "
        "clients have spent of their budgets is not in it and stays spent",
        err=True,
    )
    with HeldFolder(folder) as held:
        try:
            for path in (held / name for name in CONTENT):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise FolderError(f"{error.filename or folder} cannot be deleted: {error.strerror}") from None
