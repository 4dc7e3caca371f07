"""The errors that a producer raises to its application."""

from estimators.errors import DeniableError


class DeliveryError(DeniableError, RuntimeError):
    """The broker cannot be used, or did not take every report."""


class HopelessError(DeliveryError):
    """Waiting will not help."""


class PartitionsError(HopelessError):
    """The topic has another number of partitions."""


class ClosedError(DeniableError, RuntimeError):
    """The producer takes nothing more."""

    def __init__(self) -> None:
        super().__init__("the producer is closed")
