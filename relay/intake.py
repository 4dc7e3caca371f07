"""Until when a window takes uploads: the settings of the log, by window. Pure.

Rule: a window keeps its terms for life. A changed grace applies from the first window that no upload can have
reached yet, so ids that were forgotten when a window closed cannot count again. A new collection takes
uploads for any window at once: none can have counted before.
"""

from collections.abc import Iterator

from deniable.protocol.wire import EARLY_SECONDS
from deniable.relay.control import Intake, RelaySettings

EARLY_MS = EARLY_SECONDS * 1000


class Intakes:
    """The terms of all collections."""

    def __init__(self) -> None:
        self.current: dict[int, Intake] = {}
        self._graces: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def adopt(self, settings: RelaySettings, watermark_ms: int) -> None:
        """Apply new settings.

        Parameters
        ----------
        settings : of the log.
        watermark_ms : the highest append time so far, unix milliseconds.
        """
        self.current = {each.fingerprint: each for each in settings.collections}
        for each in settings.collections:
            spans = self._graces.setdefault((each.fingerprint, each.window_seconds), [])
            if not spans or spans[-1][1] != each.grace_seconds:
                spans.append((watermark_ms + EARLY_MS if spans else -1, each.grace_seconds))

    def closes_ms(self, intake: Intake, window_start: int) -> int:
        """Append time, unix milliseconds, after which the window takes no uploads."""
        spans = self._graces[intake.fingerprint, intake.window_seconds]
        grace = next(seconds for after, seconds in reversed(spans) if window_start * 1000 > after)
        return (window_start + intake.window_seconds + grace) * 1000

    @property
    def longest_ms(self) -> int:
        """The longest time from a window's first possible upload to its close, milliseconds."""
        return max(self._lifetimes(), default=0) * 1000

    def _lifetimes(self) -> Iterator[int]:
        for (_, window_seconds), spans in self._graces.items():
            yield EARLY_SECONDS + window_seconds + max(seconds for _, seconds in spans)
