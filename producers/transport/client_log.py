"""Keep what kafka-python logs about our connections out of the application's log.

Its INFO lines are many, and its warnings sound worse than a broker that restarts; `sender` logs in one line
each what matters. An application that uses kafka-python itself keeps that log: records are told apart by the
thread that writes them.
"""

import logging
import threading

CLIENT_ID = "deniable-producer"  # kafka-python puts it into the names of its threads

_thread = threading.local()


class _OfOtherThreads(logging.Filter):
    """Passes records of other threads; those of ours only if the application has set a level for `kafka`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to pass a record."""
        if not (hasattr(_thread, "is_ours") or CLIENT_ID in threading.current_thread().name):
            return True
        # At level DEBUG kafka-python writes the payload of every record.
        return logging.getLogger("kafka").level != logging.NOTSET and record.levelno > logging.DEBUG


_filter = _OfOtherThreads()


def keep_out_of_log() -> None:
    """Filter kafka-python's records of the calling thread, and of threads named after CLIENT_ID.

    Reaches the loggers that exist: call it again after kafka-python may have created others.
    """
    _thread.is_ours = True
    # A logger's filter does not see the records of the loggers below it.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "kafka":
            logging.getLogger(name).addFilter(_filter)
