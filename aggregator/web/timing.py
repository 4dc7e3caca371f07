"""How long the web server waits, and for what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WebTiming:
    """All in seconds, > 0.

    Parameters
    ----------
    look : between two looks for a change of the status.
    pulse : between two events of an unchanged status, a multiple of `look`; silence is a failure to a page.
    write : for a reader of the stream to take a chunk.
    read : for the windows of a roll-up to be read.
    stop : for pending responses when the server stops.
    """

    look: float = 1.0
    pulse: float = 5.0
    write: float = 10.0
    read: float = 60.0
    stop: float = 2.0


DEFAULT = WebTiming()
