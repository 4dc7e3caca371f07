"""Logs go to stderr, one line each and in one form; libraries speak up from WARNING on, and do not repeat."""

import logging
import sys
import time

import structlog
from structlog.typing import Processor

QUIET_SECONDS = 30.0  # how long a library's line is not said again, whatever it names

#: Lines of every healthy deployment's life: how the logger's name begins, level, and a part of what it says.
ROUTINE = (
    # Kafka answers so while the partition's former transaction completes, and aiokafka asks again after
    # 100 ms. Where replicas are really missing, the commit fails in the end, and the ledger's owner says so.
    ("aiokafka.producer.sender", logging.WARNING, "NotEnoughReplicasError"),
    # A worker came or went; "ledger open" tells what it means for the partitions.
    ("aiokafka.consumer.group_coordinator", logging.WARNING, "because it is rebalancing"),
    # The first group of a broker's life finds its coordinator not yet there.
    ("aiokafka", logging.ERROR, "GroupCoordinatorNotAvailableError"),
    # A broker is away: kafka-python says so for each connection, the producer once and in its own words.
    ("kafka.net.connection", logging.ERROR, "ECONNREFUSED"),
    ("kafka.net.manager", logging.ERROR, "ECONNREFUSED"),
    ("kafka.net.manager", logging.WARNING, "ECONNREFUSED"),
    ("kafka.net.manager", logging.WARNING, "not ready; waiting"),
    ("kafka.net.manager", logging.ERROR, "Bootstrap failed"),
    # kafka-python's own tasks took long: so they do on a busy machine.
    ("kafka.net.selector", logging.WARNING, ""),
    # Faust asks for fetches since the start of the worker, but aiokafka notes those since the last rebalance:
    # after each one an older worker says so. A partition that stands still is told by /readyz.
    ("faust", logging.ERROR, "has not sent fetch request"),
    # A stop that no broker answers ends Faust's agents so.
    ("faust.agents.actor", logging.ERROR, "Crashed reason=CancelledError"),
)


def configure_logs(verbose: bool = False) -> None:
    """Set up structlog and the standard library's logging.

    Parameters
    ----------
    verbose : True to hear the libraries from INFO on, every time and with tracebacks. Never DEBUG: Kafka's
        clients would log payloads.
    """
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
    ]
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        pad_event_to=24,
        exception_formatter=structlog.dev.plain_traceback,  # others print local variables
    )
    # One handler for all, since it takes a stderr that is full for what it is: no reason to stop counting.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, console],
        )
    )
    handler.setLevel(logging.INFO)  # a logger with a level of its own does not ask the root's
    if not verbose:
        handler.addFilter(_Calm())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


class _Calm(logging.Filter):
    """Lets a library speak from WARNING on, say a thing once in a while, and without its traceback.

    While a broker is away, each client of a worker says so ten times a second; the ledgers' owners and
    /readyz tell what that means.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to pass a record; what is passed of a library loses its traceback."""
        if isinstance(record.msg, dict):  # structlog's, so it is ours
            return True
        if record.levelno < logging.WARNING or _is_routine(record):
            return False
        thing = (record.name, record.levelno, str(record.msg))
        now = time.monotonic()
        if now - self._said.get(thing, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._said[thing] = now
        record.exc_info = record.exc_text = None
        return True


def _is_routine(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    return any(
        record.name.startswith(name) and record.levelno == level and text in said
        for name, level, text in ROUTINE
    )
