"""Terms: the rules under which a ledger accepts packs of a fingerprint, and their offset range. Pure.

Rule 1: the log and the ledger's terms decide what counts, never a worker's file.
A file only adds terms, at the position where a worker opens the ledger with it; so a replay decides the same.
Rule 2: a window keeps its terms for life. Changed terms apply from the first window that no pack can have
reached yet. So no change of grace lets a forgotten pack id count again.
"""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise

import msgspec

from deniable.aggregator.ledger.window_ends import Closing
from deniable.estimators.collection import Collection
from deniable.protocol import wire

EVERY_COLLECTION = 0  # in place of a fingerprint


class WindowTerms(msgspec.Struct, frozen=True, array_like=True):
    """Terms of the windows from one start on.

    Parameters
    ----------
    from_window : first window start they apply to, unix seconds.
    grace_seconds, retention_seconds, window_packs : see Collection.
    """

    from_window: int
    grace_seconds: int
    retention_seconds: int
    window_packs: int


class Terms(msgspec.Struct, frozen=True):
    """Rules under which a ledger accepts packs of one fingerprint.

    Parameters
    ----------
    name : of the collection.
    mechanism, width, window_seconds : its packs must match them.
    cohorts : its packs' cohorts must be below.
    since : offset of the first record that may be such a pack.
    spans : terms by window, `from_window` ascending; the first also covers all earlier windows.
    until : offset from which packs are rejected; None unless the collection is retired.
    closing : only of the terms that `closing_terms` gives.
    """

    name: str
    mechanism: int
    width: int
    cohorts: int
    window_seconds: int
    since: int
    spans: tuple[WindowTerms, ...]
    until: int | None = None
    closing: Closing | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.window_seconds < 1:
            raise ValueError(f"window_seconds must be at least 1, got {self.window_seconds}")
        if not self.spans or any(a.from_window >= b.from_window for a, b in pairwise(self.spans)):
            raise ValueError("spans must rise by from_window")

    def hold_at(self, offset: int) -> bool:
        """Whether a record at this offset may be a pack of this fingerprint."""
        return self.since <= offset and (self.until is None or offset < self.until)

    def span(self, window_start: int) -> WindowTerms:
        """Terms of a window."""
        if len(self.spans) == 1:
            return self.spans[0]
        found = bisect_right(self.spans, window_start, key=lambda span: span.from_window)
        return self.spans[max(0, found - 1)]

    def closes_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window takes no more reports."""
        return window_start + self.window_seconds + self.span(window_start).grace_seconds

    def dies_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window's counts are deleted."""
        span = self.span(window_start)
        return window_start + self.window_seconds + span.grace_seconds + span.retention_seconds


def closing_terms(closing: Closing, since: int) -> Terms:
    """Terms that hold for no collection, under EVERY_COLLECTION, and for the closing of all windows.

    Workers before 0.2 read them as those of a retired collection, and so keep them.
    """
    return Terms("", 0, 0, 0, 1, since, (WindowTerms(0, 0, 0, 0),), until=0, closing=closing)


def terms_at(terms: Mapping[int, Terms], start: int) -> dict[int, Terms]:
    """Terms, by fingerprint, for a count that begins at this offset: relays' markers are yet to come.

    After the first of them, what the last one before `start` said is no longer known. Until the next one, as
    long a wait as windows have is assumed.
    """
    held = terms.get(EVERY_COLLECTION)
    if held is None or not held.closing:
        return dict(terms)
    wait_ms = held.closing.wait_ms if start > held.since else 0
    return {**terms, EVERY_COLLECTION: closing_terms(Closing(held.closing.key, wait_ms=wait_ms), held.since)}


def terms_of(collection: Collection, since: int = 0) -> Terms:
    """Terms that a collection file gives, from an offset on."""
    return Terms(
        collection.name,
        collection.mechanism.wire_number,
        collection.width,
        collection.cohorts,
        collection.window_seconds,
        since,
        (span_of(collection, 0),),
    )


def untouched_window(watermark_ms: int, window_seconds: int) -> int:
    """Start of the first window that no pack appended so far can belong to, unix seconds.

    Parameters
    ----------
    watermark_ms : the highest append time so far, unix milliseconds.
    window_seconds : length of a window.
    """
    return ((watermark_ms // 1000 + wire.EARLY_SECONDS) // window_seconds + 1) * window_seconds


def span_of(collection: Collection, from_window: int) -> WindowTerms:
    """Terms that a collection file gives to windows from this start on."""
    return WindowTerms(
        from_window, collection.grace_seconds, collection.retention_seconds, collection.window_packs
    )
