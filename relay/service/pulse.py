"""Which control records a relay appends to a partition, and when. Clocks are arguments.

A marker ends a batch that has waited for `idle_seconds`, or that a window's end makes due: that of a window
with reports, and that of one that workers keep open until relays have sent all. Settings are
appended to a log that has none, or older ones; and those in force again, before retention could delete them.
Whatever two relays append at once is harmless (see `control`).
"""

from collections.abc import Sequence

from deniable.protocol.marker import closes_between
from deniable.protocol.uploads.frame import RESTATE_SECONDS
from deniable.relay.control import RelaySettings, encode_marker, encode_settings
from deniable.relay.fold import Fold
from deniable.relay.keys import RelayKeys
from deniable.relay.service.following import Following, following

CLOSED_MILLISECONDS = 50  # after a window's end, so that the marker's append time is beyond it
LEAST_SECONDS, MOST_SECONDS = 0.1, 1.0  # between two markers; a batch may wait for longer


class Pulse:
    """The control records of one partition.

    Parameters
    ----------
    own : settings of the collection file.
    keys : of the relays.
    idle_seconds : see the collection file.
    rhythms : window_seconds and grace_seconds of the collections, as workers have them.
    """

    def __init__(
        self,
        own: RelaySettings,
        keys: RelayKeys,
        idle_seconds: float,
        rhythms: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._rhythms = rhythms
        self._own, self._keys = own, keys
        self._idle_seconds = idle_seconds
        self._batch_since: float | None = None
        self._next_marker = 0.0
        self._next_statement = 0.0
        self._appended = -1
        self._followed: RelaySettings | None = None
        self._following = Following()
        self._news: Following | None = None

    def due(self, fold: Fold, is_at_end: bool, now: float, now_ms: float) -> bytes | None:
        """Return the control record to append now; None if there is none.

        Parameters
        ----------
        fold : of the partition.
        is_at_end : whether it has applied all records of the log.
        now : of a clock that never goes back, seconds.
        now_ms : unix milliseconds.
        """
        self._note(fold, now)
        if not is_at_end or fold.position <= self._appended:
            return None
        partition, held = fold.partition, fold.settings
        if held is None or held is not self._followed:
            self._followed, self._following = held, following(self._own, held)
            self._news = self._following
        if (settings := self._following.settings) is not None:
            return encode_settings(self._keys, partition, settings)
        if held is not None and now >= self._next_statement:
            return encode_settings(self._keys, partition, held)
        return encode_marker(self._keys, partition) if self._is_over(fold, now, now_ms) else None

    def appended(self, record_is_settings: bool, offset: int, now: float) -> None:
        """Note that a control record is in the log; nothing is due until the fold has applied it."""
        self._appended = offset
        self._next_marker = now + min(max(LEAST_SECONDS, self._idle_seconds), MOST_SECONDS)
        if record_is_settings:
            self._next_statement = now + RESTATE_SECONDS

    def news(self) -> Following | None:
        """Return how the file and the log's settings go together, once after each change."""
        news, self._news = self._news, None
        return news

    def _note(self, fold: Fold, now: float) -> None:
        if not fold.uploaded:
            self._batch_since = None
        elif self._batch_since is None:
            self._batch_since = now

    def _is_over(self, fold: Fold, now: float, now_ms: float) -> bool:
        if now < self._next_marker:
            return False
        over_ms = int(now_ms) - CLOSED_MILLISECONDS
        closes_ms = fold.windows.next_close_ms()
        if closes_ms is not None and over_ms > closes_ms:
            return True
        if closes_between(self._rhythms, fold.ended_ms, over_ms):
            return True
        return self._batch_since is not None and now - self._batch_since >= self._idle_seconds
