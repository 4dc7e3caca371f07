"""The command `deniable`: how it starts, ends, and says what is wrong."""

import signal
import sys

import aiokafka.errors
import click
import kafka.errors

from aggregator.ledger import UnknownFingerprint
from aggregator.replay import ReplayError
from aggregator.rows import RowError
from aggregator.web import PortInUseError
from aggregator.worker import WorkerError
from deploy.addresses import UnreachableError
from deploy.broker_errors import BrokerError
from deploy.collection_file import CollectionFileError
from deploy.commands import deniable
from deploy.demo_setup import DemoError
from deploy.feed import FeedError
from deploy.flights import FlightsError
from deploy.topic_setup import TopicError
from producers.connection import DeliveryError
from producers.secret import SecretError

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

#: What a user or an operator can mend: one line on stderr, exit status 1, never a traceback.
EXPECTED = (
    BrokerError,
    CollectionFileError,
    DeliveryError,
    DemoError,
    FeedError,
    FlightsError,
    PortInUseError,
    ReplayError,
    RowError,
    SecretError,
    TopicError,
    UnknownFingerprint,
    UnreachableError,
    WorkerError,
    aiokafka.errors.KafkaError,
    kafka.errors.KafkaError,
)


def main() -> None:
    """Run the command and say in one line what a user can mend."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, _end)
    try:
        code = deniable.main(prog_name="deniable", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except EXPECTED as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _end(number: int, _: object) -> None:
    """End in good order, children included, as with Ctrl-C."""
    sys.exit(128 + number)
