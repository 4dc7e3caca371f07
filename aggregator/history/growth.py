"""Frequent texts of past windows of a prefix tree, found without candidates."""

import msgspec
import numpy as np

from aggregator.history.rollup import WindowCoverage
from aggregator.history.window_reader import Joined
from estimators.collection import Collection
from estimators.decoding.hashed.growth.alphabet import alphabet_of
from estimators.decoding.hashed.growth.grow import FoundTexts, grow
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.rollup import client_overlap

RECORD_VERSION = 1


class GrowthRecord(msgspec.Struct, frozen=True):
    """What was found in a period, for programs: one JSON object.

    Arrays have an entry for each text, the most frequent first; `found` is null if there are fewer reports
    than minimum_reports.
    """

    version: int
    collection: str
    fingerprint: str
    window_seconds: int
    coverage: WindowCoverage
    reports: int
    packs: int
    rejected: int
    rate: float
    found: "FoundRecord | None"


class FoundRecord(msgspec.Struct, frozen=True):
    """Texts that the tree found; fractions are of all reports.

    Parameters
    ----------
    texts : in UTF-8; a character that the last level cuts is written as its bytes.
    whole : False for the beginnings of one or several texts, as long as the last level.
    frequency, std_error, low, high : as of FoundTexts.
    unexplained, unexplained_error : share of reports with none of the texts, and its standard error.
    tested : texts that the last level tested.
    level_reports : of each level.
    """

    texts: list[str]
    whole: list[bool]
    frequency: list[float]
    std_error: list[float]
    low: list[float]
    high: list[float]
    unexplained: float
    unexplained_error: float
    tested: int
    level_reports: list[int]


def shown_text(found: bytes) -> str:
    """Return a found text for people; a character that was cut is written as its bytes."""
    return found.decode("utf-8", "backslashreplace")


def grow_windows(
    collection: Collection, mechanism: PrefixTree, joined: Joined, alphabet: str, rate: float
) -> FoundTexts | None:
    """Grow the tree from the counts of joined windows; None with fewer reports than minimum_reports.

    Errors are also valid if the same clients report in every window, as `shared` of a roll-up.

    Parameters
    ----------
    collection : of the windows.
    mechanism : its own.
    joined : counts of the windows.
    alphabet : characters of the texts; empty for any.
    rate : largest expected share of false texts among those found, in (0, 1).

    Raises
    ------
    ValueError as `grow`.
    """
    if joined.counts.reports < collection.minimum_reports:
        return None
    overlap = client_overlap(np.array(list(joined.reports.values()), np.int64))
    symbols = alphabet_of(alphabet)
    return grow(joined.counts.counts, mechanism, collection.hash_key, symbols, rate, overlap)


def growth_record(
    collection: Collection, coverage: WindowCoverage, joined: Joined, rate: float, found: FoundTexts | None
) -> GrowthRecord:
    """Put what was found into its record."""
    return GrowthRecord(
        version=RECORD_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        window_seconds=collection.window_seconds,
        coverage=coverage,
        reports=joined.counts.reports,
        packs=joined.counts.packs,
        rejected=joined.counts.rejected,
        rate=rate,
        found=None if found is None else _found_record(found),
    )


def _found_record(found: FoundTexts) -> FoundRecord:
    share, error = found.unexplained
    return FoundRecord(
        texts=[shown_text(each) for each in found.texts],
        whole=found.is_whole.tolist(),
        frequency=found.frequency.tolist(),
        std_error=found.std_error.tolist(),
        low=found.low.tolist(),
        high=found.high.tolist(),
        unexplained=share,
        unexplained_error=error,
        tested=found.tested,
        level_reports=found.reports.tolist(),
    )
