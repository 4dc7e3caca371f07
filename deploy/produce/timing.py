"""How long runs of `deniable produce` and `deniable canary` wait, and for what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunTiming:
    """All in seconds, >= 0.

    Parameters
    ----------
    wait : for the store, for room in the outbox, and at the end for each acknowledgement.
    stop : for acknowledgements of an interrupted run.
    uncharged : the same if clients cannot be charged: their reports would use up any wait.
    notice : before a wait is reported on stderr.
    batch : most between the first and the last line of a batch, which all get the same window.
    poll : for more input; then a batch that is due is sent.
    open_quote : for the end of a cell in quotes, before that is reported on stderr.
    linger : for the last lines of a renamed file, until its writer has opened the new one.
    """

    wait: float = 60.0
    stop: float = 10.0
    uncharged: float = 1.0
    notice: float = 0.5
    batch: float = 1.0
    poll: float = 0.2
    open_quote: float = 5.0
    linger: float = 1.0


DEFAULT = RunTiming()
