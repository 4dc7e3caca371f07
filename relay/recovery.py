"""The position of a relay: what one ordinary commit of its consumer group remembers. Pure.

A relay sends the packs of a batch, waits for all acknowledgements, then commits the batch's end, with this as
the commit's metadata. A relay that starts begins to read at `rewind`, an earlier end of a batch, and sends no
packs until it reaches `position`.

Rule: every upload that could reach a window that is open at `position` was appended at or after `rewind`. So
by the rules of `fold`, the relay then holds the ids and reports that the one before it held.

A lost commit, or one that a paused relay overwrites with an older one, only sends packs again. Without any
commit, a fold begins at the first record that is left; if that is not the log's first, it works from the
first settings on, and windows that had begun are incomplete. Those settings must have been in force: relays
write others only in a race of two files, and those in force again within RESTATE_SECONDS.
"""

from collections import deque

from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from deniable.relay.fold import Fold, RelayBatch, Start

ENTRIES = 256  # about, from `rewind` to the position


class Ends:
    """Ends of batches, to choose the one to rewind to.

    Parameters
    ----------
    start : of the fold whose batches follow.
    """

    def __init__(self, start: Start) -> None:
        revision = start.settings.revision if start.settings else None
        self._ends = deque([(start.offset, start.watermark_ms, revision)])

    @property
    def first(self) -> int:
        """Offset of the end to rewind to."""
        return self._ends[0][0]

    def passed(self, batch: RelayBatch, fold: Fold) -> Position:
        """Note the end of a batch; return the position to commit once it is sent."""
        lifetime = fold.intakes.longest_ms
        ends = self._ends
        # The first end stays as long as no other one lies before all windows that are open now.
        while len(ends) > 1 and ends[1][1] < batch.watermark_ms - lifetime:
            ends.popleft()
        if batch.watermark_ms - ends[-1][1] >= lifetime // ENTRIES:
            ends.append((batch.end, batch.watermark_ms, batch.settings.revision))
        rewind, watermark_ms, revision = ends[0]
        settings = NO_SETTINGS if revision is None else fold.settings_offsets[revision]
        return Position(batch.end, rewind, watermark_ms, settings, batch.watermark_ms)
