"""Whether Kafka answers: one log line when it no longer does, and one when it does again."""

import structlog

_log = structlog.get_logger(__name__)


class Away:
    """Notes errors of a connection; `cause` is empty while all is well.

    Parameters
    ----------
    servers : addresses of Kafka.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self.cause = ""

    def __str__(self) -> str:
        """The reason for `/readyz`."""
        return f"Kafka at {self._servers} does not answer: {self.cause}"

    def failed(self, error: BaseException) -> None:
        """Note an error that is worth a retry; log the first one."""
        cause = type(error).__name__
        if not self.cause:
            _log.warning(
                f"Kafka at {self._servers} does not answer; the relay tries again until it does, and uploads "
                "wait",
                cause=cause,
            )
        self.cause = cause

    def answered(self) -> None:
        """Note an answer."""
        if self.cause:
            _log.info(f"Kafka at {self._servers} answers again")
        self.cause = ""
