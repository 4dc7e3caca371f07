"""Whether Kafka answers: one log line when it no longer does, and one when it does again."""

import structlog

_log = structlog.get_logger(__name__)


class Away:
    """Notes errors of a connection; `cause` is empty while all is well."""

    def __init__(self) -> None:
        self.cause = ""

    def failed(self, error: BaseException) -> None:
        """Note an error that is worth a retry; log it if its kind is new."""
        cause = type(error).__name__
        if cause != self.cause:
            _log.warning("Kafka does not answer; the relay tries again until it does", cause=cause)
        self.cause = cause

    def answered(self) -> None:
        """Note an answer."""
        if self.cause:
            _log.info("Kafka answers again")
        self.cause = ""
