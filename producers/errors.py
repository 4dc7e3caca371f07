"""The errors that a producer raises to its application."""

from estimators.errors import DeniableError


class DeliveryError(DeniableError, RuntimeError):
    """The broker cannot be used, or has not acknowledged every report."""


class HopelessError(DeliveryError):
    """The broker cannot be used, and waiting will not help."""


class PartitionsError(HopelessError):
    """The topic's number of partitions differs from the configuration's."""


class ClosedError(DeniableError, RuntimeError):
    """The producer is closed and takes no more reports."""

    def __init__(self) -> None:
        super().__init__("the producer is closed")
