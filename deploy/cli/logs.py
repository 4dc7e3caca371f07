"""Log to stderr, one line an event in one format; libraries from WARNING on, without repetition."""

import logging
import sys
import time
import traceback

import structlog
from structlog.typing import Processor

QUIET_SECONDS = 30.0  # a library's message is not repeated within this time, whatever its arguments

#: Messages that healthy deployments log, too: prefix of the logger's name, level, part of the message.
ROUTINE = (
    # Kafka's answer while the partition's previous transaction completes; aiokafka retries after 100 ms. If
    # replicas are really missing, the commit fails in the end, and the partition's owner logs it.
    ("aiokafka.producer.sender", logging.WARNING, "NotEnoughReplicasError"),
    # A worker joined or left; "ledger open" says which partitions it concerns.
    ("aiokafka.consumer.group_coordinator", logging.WARNING, "because it is rebalancing"),
    # A new broker creates the coordinator's topic for its first group.
    ("aiokafka", logging.ERROR, "GroupCoordinatorNotAvailableError"),
    # A broker is away: kafka-python logs each connection, our producer logs it once.
    ("kafka.net.connection", logging.ERROR, "ECONNREFUSED"),
    ("kafka.net.manager", logging.ERROR, "ECONNREFUSED"),
    ("kafka.net.manager", logging.WARNING, "ECONNREFUSED"),
    ("kafka.net.manager", logging.WARNING, "not ready; waiting"),
    ("kafka.net.manager", logging.ERROR, "Bootstrap failed"),
    # kafka-python's tasks take long on a busy machine.
    ("kafka.net.selector", logging.WARNING, ""),
    # Faust compares fetches since the worker's start with aiokafka's, which count from the last rebalance, so
    # older workers log this after each one. /readyz reports a partition that makes no progress.
    ("faust", logging.ERROR, "has not sent fetch request"),
    # Faust's agents end like this when the worker stops while no broker answers.
    ("faust.agents.actor", logging.ERROR, "Crashed reason=CancelledError"),
)


def configure_logs(verbose: bool = False) -> None:
    """Set up structlog and the standard library's logging.

    Parameters
    ----------
    verbose : True to log the libraries from INFO on, with repetitions and tracebacks. Never DEBUG: Kafka's
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
    # A logging handler also for structlog, since it survives a full stderr: no reason to stop counting.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, console],
        )
    )
    handler.setLevel(logging.INFO)  # loggers with their own level ignore the root's
    if verbose:
        logging.getLogger("kafka").setLevel(logging.INFO)  # also its records about a producer's connections
    else:
        handler.addFilter(_LibraryFilter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def silence(library: str) -> None:
    """Log nothing of a library in this process unless --verbose is given: its user reports what it means."""
    for handler in logging.getLogger().handlers:
        for each in handler.filters:
            if isinstance(each, _LibraryFilter):
                each.silent.add(library)


def silence_clients() -> None:
    """Silence Kafka's clients: the command says what an outage means, or ends with it."""
    for library in ("kafka", "aiokafka"):
        silence(library)


class _LibraryFilter(logging.Filter):
    """Passes a library's records from WARNING on, without repetitions and tracebacks.

    While a broker is away, each client of a worker logs it ten times a second; the partitions' owners and
    /readyz report what it means.
    """

    def __init__(self) -> None:
        super().__init__()
        self.silent: set[str] = set()
        self._logged_at: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to pass a record; a library's record loses its traceback."""
        if isinstance(record.msg, dict):  # from structlog, so it is ours
            return True
        is_silent = record.name.partition(".")[0] in self.silent or self._is_own_matter(record)
        if is_silent or record.levelno < logging.WARNING or _is_routine(record):
            return False
        message = (record.name, record.levelno, str(record.msg))
        now = time.monotonic()
        if now - self._logged_at.get(message, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._logged_at[message] = now
        record.exc_info = record.exc_text = None
        return True

    def _is_own_matter(self, record: logging.LogRecord) -> bool:
        """Whether asyncio says that nobody took the error of a silenced library's own task or future."""
        if record.name != "asyncio" or not isinstance(record.exc_info, tuple) or record.exc_info[1] is None:
            return False
        error = record.exc_info[1]
        raised = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
        return any(name.partition(".")[0] in self.silent for name in (type(error).__module__, *raised))


def _is_routine(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return any(
        record.name.startswith(name) and record.levelno == level and text in message
        for name, level, text in ROUTINE
    )
