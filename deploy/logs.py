"""Logs go to stderr, one line each; libraries speak up from WARNING on, and do not repeat themselves."""

import logging
import sys
import time

import structlog

QUIET_SECONDS = 30.0  # how long a library's line is not said again, whatever it names


def configure_logs(verbose: bool = False) -> None:
    """Set up structlog and the standard library's logging.

    Parameters
    ----------
    verbose : True to hear the libraries from INFO on, every time and with tracebacks. Never DEBUG: Kafka's
        clients would log payloads.
    """
    level = logging.INFO if verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)  # a logger with a level of its own does not ask the root's
    if not verbose:
        handler.addFilter(_Calm())
    logging.basicConfig(
        handlers=[handler],
        level=level,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        force=True,
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class _Calm(logging.Filter):
    """Lets a library say a thing once in a while, without its traceback.

    While a broker is away, each client of a worker says so ten times a second; the ledgers' owners and
    /readyz tell what that means.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to pass a record; what is passed loses its traceback."""
        if _is_routine(record):
            return False
        thing = (record.name, record.levelno, str(record.msg))
        now = time.monotonic()
        if now - self._said.get(thing, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._said[thing] = now
        record.exc_info = record.exc_text = None
        return True


def _is_routine(record: logging.LogRecord) -> bool:
    """True for a retry that is part of every busy ledger's life, or of every new broker's.

    Kafka answers NotEnoughReplicas while the partition's former transaction completes, and aiokafka asks
    again after 100 ms. Where replicas are really missing, the commit fails in the end, and the ledger's
    owner says so. The first group of a broker's life finds its coordinator not yet there.
    """
    said = record.getMessage()
    if record.name == "kafka.net.selector":
        return record.levelno == logging.WARNING  # its own tasks took long: so they do on a busy machine
    if record.name == "aiokafka.producer.sender" and record.levelno == logging.WARNING:
        return "NotEnoughReplicasError" in said
    return "GroupCoordinatorNotAvailableError" in said
