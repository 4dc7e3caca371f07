"""Terms: under which a ledger takes the packs of a fingerprint, and between which offsets. Pure.

Rule 1: what counts is decided by the log and by the terms that the ledger holds, never by a worker's file.
A file only adds terms, at the position where a worker opens the ledger with it; so a replay decides the same.
Rule 2: a window has the same terms all its life. Terms that change hold from the first window on that no pack
can have reached yet. So no change of grace lets a forgotten pack id count again.
"""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise

import msgspec

from estimators.collection import Collection
from producers import wire

EARLY_SECONDS = 300  # how far a window may start after the append time: room for producers' clocks


class TermsError(ValueError):
    """A worker's collection file does not go with the terms of a ledger; the message says what to do."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Terms of the windows from one start on.

    Parameters
    ----------
    from_window : the first start that they hold for, unix seconds.
    grace_seconds, retention_seconds, window_packs : as of Collection.
    """

    from_window: int
    grace_seconds: int
    retention_seconds: int
    window_packs: int


class Terms(msgspec.Struct, frozen=True):
    """Under which a ledger takes the packs of one fingerprint.

    Parameters
    ----------
    name : of the collection.
    mechanism, width, cohorts, window_seconds : what its packs must say, or lie within.
    since : offset of the first record that may be such a pack.
    spans : by window, `from_window` rising, the first one for all windows before it too.
    until : offset from which on they are turned away; None while the collection is not retired.
    """

    name: str
    mechanism: int
    width: int
    cohorts: int
    window_seconds: int
    since: int
    spans: tuple[Span, ...]
    until: int | None = None

    def __post_init__(self) -> None:
        if not self.spans or any(a.from_window >= b.from_window for a, b in pairwise(self.spans)):
            raise ValueError("spans must rise by from_window")

    def hold_at(self, offset: int) -> bool:
        """Whether a record at this offset may be a pack of this fingerprint."""
        return self.since <= offset and (self.until is None or offset < self.until)

    def span(self, window_start: int) -> Span:
        """Terms of a window."""
        found = bisect_right(self.spans, window_start, key=lambda span: span.from_window)
        return self.spans[max(0, found - 1)]

    def closes_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window takes no more reports."""
        return window_start + self.window_seconds + self.span(window_start).grace_seconds

    def dies_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window's counts are deleted."""
        return self.closes_at(window_start) + self.span(window_start).retention_seconds


def terms_of(collection: Collection, since: int = 0) -> Terms:
    """Terms that a collection file gives, from an offset on."""
    return Terms(
        collection.name,
        wire.mechanism_number(collection.mechanism),
        collection.width,
        collection.cohorts,
        collection.window_seconds,
        since,
        (_span(collection, 0),),
    )


def untouched_window(watermark_ms: int, window_seconds: int) -> int:
    """Start of the first window that no pack appended up to now may lie in, unix seconds.

    Parameters
    ----------
    watermark_ms : the highest append time so far, unix milliseconds.
    window_seconds : length of a window.
    """
    return ((watermark_ms // 1000 + EARLY_SECONDS) // window_seconds + 1) * window_seconds


def changed_terms(
    terms: Mapping[int, Terms], collections: Mapping[int, Collection], position: int, watermark_ms: int
) -> dict[int, Terms]:
    """What a ledger must add to its terms to go with a file.

    Parameters
    ----------
    terms : of the ledger, by fingerprint.
    collections : of the file, by fingerprint.
    position : next offset that the ledger counts.
    watermark_ms : the highest append time that it counted, unix milliseconds.

    Returns
    -------
    By fingerprint, new terms and those that change; empty if file and ledger agree. What is retired stays so.

    Raises
    ------
    TermsError if the file lacks a fingerprint that is not retired.
    """
    for fingerprint, held in terms.items():
        if held.until is None and fingerprint not in collections:
            raise TermsError(
                f"collection '{held.name}' (fingerprint {fingerprint:016x}) is counted, and the collection "
                f"file lacks it or defines it differently; put it back as it was, or end it: raise revision, "
                f"then run deniable retire {held.name}"
            )
    changed = {}
    for fingerprint, collection in collections.items():
        known = terms.get(fingerprint)
        if known is None:
            changed[fingerprint] = terms_of(collection, position)
        elif known.until is None and (grown := _extended(known, collection, watermark_ms)) != known:
            changed[fingerprint] = grown
    return changed


def check_revision(ledger: int, file: int) -> None:
    """Check that a file is not older than the one that a ledger was last opened with.

    Parameters
    ----------
    ledger : revision of that file; 0 if there was none.
    file : revision of this one.

    Raises
    ------
    TermsError.
    """
    if file < ledger:
        raise TermsError(
            f"revision of the collection file must be {ledger} or more, got {file}: a worker has counted "
            f"with a newer file already; start this one with that file"
        )


def check_raised(ledger: int, file: int, changed: Mapping[int, Terms]) -> None:
    """Check that a file that changes something is newer; parameters as of `check_revision`.

    Raises
    ------
    TermsError.
    """
    if changed and file == ledger:
        names = ", ".join(sorted({terms.name for terms in changed.values()}))
        raise TermsError(
            f"the collection file has changed ({names}) and its revision has not: raise revision to "
            f"{ledger + 1}, so that no worker with the former file counts beside this one"
        )


def _extended(held: Terms, collection: Collection, watermark_ms: int) -> Terms:
    start = untouched_window(watermark_ms, held.window_seconds)
    # Two changes within a few minutes: the second takes the place of what no window has met.
    kept = tuple(span for span in held.spans if span.from_window < start)
    wanted = _span(collection, start)
    latest = held.spans[-1]
    if msgspec.structs.replace(latest, from_window=start) == wanted:
        return held
    return msgspec.structs.replace(held, spans=(*kept, wanted))


def _span(collection: Collection, from_window: int) -> Span:
    return Span(from_window, collection.grace_seconds, collection.retention_seconds, collection.window_packs)
