"""Warnings of what a table lacks, or holds more of than its reader expects: each with a remedy.

Rule 1: a period that begins before what its source holds is named. Else a month of which a week is left looks
like a month.
Rule 2: windows of two definitions are named with both fingerprints, whether one is left out or both are in
the table: their shares and errors may not be of the same thing.
"""

import inspect
import warnings
from collections.abc import Mapping, Set
from typing import NamedTuple

from deniable.aggregator.history.periods import LATEST, Period, iso
from deniable.protocol.words import number_of

NAMES_SHOWN = 20
OURS = "deniable."


class HeldSpan(NamedTuple):
    """Windows of a collection that a source holds, whatever was asked for; unix seconds.

    Parameters
    ----------
    start, end : from the start of the first one to the end of the last.
    seconds : length of a window.
    """

    start: int
    end: int
    seconds: int


class Remedies(NamedTuple):
    """What gives the windows that a source lacks, before what it holds and after it."""

    earlier: str
    later: str


def joined_span(spans: "list[HeldSpan | None]") -> HeldSpan | None:
    """Return the span from the first start to the last end; None if there is none."""
    found = [each for each in spans if each is not None]
    if not found:
        return None
    return HeldSpan(
        min(each.start for each in found),
        max(each.end for each in found),
        max(each.seconds for each in found),
    )


def warn(text: str) -> None:
    """Warn at the line of the analyst's program that called us."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith(OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def warn_of_contradictions(collection: str, windows: int, whose: str = "") -> None:
    """Warn if no true values explain the counts of some windows, or of `whose`: such shares mean nothing."""
    if windows:
        warn(
            f"{collection}: the counts of {whose or number_of(windows, 'window')} contradict the "
            f"parameters, so shares mean nothing: deniable detect {collection} names the windows"
        )


def warn_of_names(collection: str, names: Set[str]) -> None:
    """Warn that files hold other collections only, with their names: a typo looks like an empty table."""
    shown = ", ".join(sorted(names)[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    warn(f"{collection}: the files hold nothing of it; there are: {shown}{more}")


def warn_of_span(
    collection: str, period: Period, held: HeldSpan | None, where: str, remedies: Remedies
) -> None:
    """Warn if whole windows of the period are before, or all of it is outside, what a source holds.

    Parameters
    ----------
    collection : its name.
    period : as asked; one from 1970 on asks for all there is.
    held : None if the source holds nothing of the collection.
    where : names the source, such as "the files".
    remedies : what gives the windows that are not there.
    """
    if held is None:
        return
    whole = period.whole_windows(held.seconds)
    there = f"{collection}: {where} hold windows from {iso(held.start)} to {iso(held.end)}"
    asked = f"from {iso(period.start)} on" if period.end >= LATEST else f"in {period}"
    if held.end <= whole.start:
        warn(f"{there}, and none {asked}: give an earlier period, or {remedies.later}")
    elif whole.end <= held.start:
        warn(f"{there}, and none {asked}: give a later period, or {remedies.earlier}")
    elif period.start > 0 and whole.start < held.start:
        warn(f"{there}, and none before, from {iso(period.start)} on: {remedies.earlier}")


def deleted_sentence(collection: str, period: Period, kept_from: int, topic: str) -> str:
    """Say that a topic has deleted records of a period.

    Parameters
    ----------
    collection, period : as asked.
    kept_from : unix seconds from which the topic has all its records, after the period's start.
    topic : its name.
    """
    return (
        f"{collection}: {topic} keeps records since {iso(kept_from)}, and the period begins at "
        f"{iso(period.start)}: earlier windows are not in it; for longer periods let deniable export "
        "--follow run and read its files, or raise the topic's retention.ms"
    )


def warn_of_others(collection: str, fingerprint: str, others: Mapping[str, int], remedy: str = "") -> None:
    """Warn of windows that were left out, being counted under other parameters.

    Parameters
    ----------
    collection : its name.
    fingerprint : of the windows that were read, in hex.
    others : windows left out, by fingerprint in hex.
    remedy : what reads them, too.
    """
    remedy = remedy or "give the collection file that they were counted under to read them"
    for other, windows in others.items():
        warn(
            f"{collection}: {number_of(windows, 'window')} with other parameters (fingerprint {other}) "
            f"skipped; those of the collection file have fingerprint {fingerprint}: {remedy}"
        )


def warn_of_mixture(collection: str, found: Mapping[str, int]) -> None:
    """Warn if a table holds windows of several definitions of a collection.

    Parameters
    ----------
    collection : its name.
    found : windows by fingerprint in hex.
    """
    if len(found) < 2:
        return
    parts = ", ".join(
        f"{fingerprint} ({number_of(windows, 'window')})" for fingerprint, windows in sorted(found.items())
    )
    warn(
        f"{collection}: windows of {len(found)} definitions are in the table, by fingerprint: {parts}; their "
        "shares and errors may not be comparable: give config, the collection file of one of them, or filter "
        "by the column fingerprint"
    )
