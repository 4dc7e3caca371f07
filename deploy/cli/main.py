"""The command `deniable`: how it starts, ends, and says what is wrong.

Rule: what takes long to import is imported after SIGINT is handled, so that Ctrl-C is quiet from the start.
"""

import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

from deploy.cli import standard_streams
from deploy.cli.signals import end_in_good_order, handle, leave_at_once

FAILED = 1
REFUSED = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

#: What a user or an operator can mend: one line on stderr, exit status 1, never a traceback.
EXPECTED = (
    ("aggregator.maintenance.ledger_changes", "MaintenanceError"),
    ("aggregator.maintenance.replay", "ReplayError"),
    ("aggregator.web.server", "PortInUseError"),
    ("aggregator.worker", "WorkerError"),
    ("aiokafka.errors", "KafkaError"),
    ("deploy.cluster.permissions.acls", "AclError"),
    ("deploy.cluster.connection.probe", "UnreachableError"),
    ("deploy.broker.errors", "BrokerError"),
    ("deploy.config.file", "CollectionFileError"),
    ("deploy.demo.setup", "DemoError"),
    ("deploy.demo.flights", "FlightsError"),
    ("deploy.broker.locked_folder", "FolderError"),
    ("deploy.produce.input.source", "FeedError"),
    ("deploy.cluster.topics.setup", "TopicSetupError"),
    ("kafka.errors", "KafkaError"),
    ("producers.errors", "DeliveryError"),
    ("producers.randomization.secret", "SecretError"),
    ("producers.transport.credential_files", "SecurityError"),
    ("producers.storage.store", "StoreError"),
)

#: What stored ledgers say no to: the same, but exit status 3, since starting again mends nothing.
REFUSALS = (
    ("aggregator.ledger.terms_update", "TermsError"),
    ("aggregator.partition.ledger_checks", "LedgerRefusedError"),
    ("aggregator.ledger.row_values", "RowError"),
)


def main() -> None:
    """Run the command and say in one line what a user can mend."""
    standard_streams.open_closed()
    handle(signal.SIGINT, leave_at_once)  # until the command is loaded
    for number in (signal.SIGTERM, signal.SIGHUP):
        handle(number, end_in_good_order)
    try:
        status = _run()
    except OSError as error:  # the system refused something: a disk is full, a stream is closed
        status = _refuse(standard_streams.flush() or _words(error))
    handle(signal.SIGINT, leave_at_once)
    lost = standard_streams.flush()
    sys.exit(_refuse(lost) if lost else status)


def _run() -> int:
    import click

    from deploy.cli.commands import deniable

    try:
        status = deniable.main(prog_name="deniable", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as ended:
        status = ended.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except _loaded(REFUSALS) as error:
        return _refuse(str(error), REFUSED)
    except _loaded(EXPECTED) as error:
        return _refuse(str(error))
    return status if isinstance(status, int) else 0


def _loaded(errors: Iterable[tuple[str, str]]) -> tuple[type[BaseException], ...]:
    """Those whose modules are loaded; no other can have been raised."""
    return tuple(getattr(sys.modules[module], name) for module, name in errors if module in sys.modules)


def _refuse(said: str, status: int = FAILED) -> int:
    with suppress(OSError):  # stderr may be what is full
        print(f"Error: {said}", file=sys.stderr, flush=True)  # noqa: T201 - click may not be loaded
    return status


def _words(error: OSError) -> str:
    silent = isinstance(error, TimeoutError) and not error.strerror
    reason = "Kafka did not answer in time" if silent else error.strerror or repr(error)
    return f"{error.filename}: {reason}" if error.filename else reason
