"""How long a producer's threads wait, and for what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProducerTiming:
    """All in seconds, > 0.

    Parameters
    ----------
    busy : for another process's transaction when the store is opened or closed.
    end : for the storing thread to end on `close`.
    retry : before connecting again, after the first failure, the second, and so on; the last one repeats.
    stall : without an acknowledgement while packs are in flight or wait: then reconnect and report unready.
    disconnect : for an attempt to connect, on `close`.
    comparison : between two comparisons with the parameters that workers publish.
    """

    busy: float = 5.0
    end: float = 15.0
    retry: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 5.0)
    stall: float = 20.0
    disconnect: float = 1.0
    comparison: float = 60.0


DEFAULT = ProducerTiming()
