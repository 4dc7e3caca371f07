"""The errors that a producer raises to its application."""

from deniable.estimators.errors import DeniableError


class DeliveryError(DeniableError, RuntimeError):
    """The broker cannot be used, or has not acknowledged every report."""


def newly_dropped(before: int, now: int) -> list[str]:
    """Return the reason for a DeliveryError if more reports were dropped than at the last flush."""
    lost = "1 report was" if now - before == 1 else f"{now - before} reports were"
    return [f"{lost} dropped since the last flush"] if now > before else []


class HopelessError(DeliveryError):
    """The broker cannot be used, and waiting will not help."""


class PartitionsError(HopelessError):
    """The topic's number of partitions differs from the configuration's."""


class MissingTopicError(HopelessError):
    """The topic does not exist. Packs are kept; they are sent once somebody creates it."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} does not exist; create it: deniable topics create")


class ClosedError(DeniableError, RuntimeError):
    """The producer is closed and takes no more reports."""

    def __init__(self) -> None:
        super().__init__("the producer is closed")
