"""A producer that prints what would leave: the whole way of a report but its last step."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from deniable.config.file import Configuration
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from deniable.protocol.secrets.private_file import create_private
from deniable.protocol.secrets.secret import NEW_SECRET_BYTES

_log = logging.getLogger(__name__)


def open_on_console(configuration: Configuration, stream: TextIO | None = None) -> Producer:
    """Open a producer that prints each pack as a JSON line, and sends and charges nothing.

    Its secret, budgets and outbox are in a temporary folder that ends with it: those of the file stay as they
    are. It is closed at the end of the process, if not before.

    Parameters
    ----------
    configuration : of the collection file.
    stream : that it prints to; None for standard output.

    Raises
    ------
    StoreError if the temporary folder cannot be used.
    """
    folder = _new_folder()
    producer = Producer(_printing(producer_config(configuration, connects=False), folder, stream))
    weakref.finalize(producer, _remove, folder, os.getpid())
    atexit.register(_close, weakref.ref(producer))  # after the line above, so it runs before that at exit
    return producer


def _close(reference: weakref.ref[Producer]) -> None:
    producer = reference()
    if producer is not None:
        try:
            producer.close()
        except DeliveryError as error:
            _log.error("closed at the end of the process: %s", error)


@contextmanager
def on_console(config: ProducerConfig) -> Iterator[ProducerConfig]:
    """Change a configuration so that its producer prints to standard output, as `open_on_console` says.

    The temporary folder ends with the context, in which the producer must be closed.
    """
    folder = _new_folder()
    try:
        yield _printing(config, folder, None)
    finally:
        _remove(folder, os.getpid())


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deniable-console-"))
    create_private(folder / "secret", os.urandom(NEW_SECRET_BYTES))
    return folder


def _printing(config: ProducerConfig, folder: Path, stream: TextIO | None) -> ProducerConfig:
    console = stream or sys.stdout
    return replace(config, data_dir=folder, console=console, edge=None, secret_file=None, budget_store=None)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has the same folder
        shutil.rmtree(folder, ignore_errors=True)
