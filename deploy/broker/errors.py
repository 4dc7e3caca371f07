"""Errors of the embedded broker, for the person at the terminal."""

from deniable.estimators.errors import DeniableError


class BrokerError(DeniableError, RuntimeError):
    """The embedded broker cannot start; the message says why and, where known, what to do."""


class ToolMissingError(BrokerError):
    """Java or Maven is not installed, or too old; the message says what to run."""
