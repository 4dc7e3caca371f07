"""Frequent texts of past windows of a prefix tree, found without candidates."""

import msgspec

from deniable.aggregator.estimation.growing import grown
from deniable.aggregator.history.rollup import PastRecord, WindowCoverage, past_fields
from deniable.aggregator.history.window_reader import Joined
from deniable.estimators.collection import Collection
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts
from deniable.estimators.mechanisms.hashing.prefix_tree import shown_text
from deniable.estimators.rollup.one_thread import one_blas_thread


class GrowthRecord(PastRecord, frozen=True):
    """What was found in a period, for programs: one JSON object.

    Arrays have an entry for each text, the largest estimate before the selection first (`frequency` takes the
    selection into account); `found` is null if there are fewer reports than minimum_reports.
    """

    rate: float
    found: "FoundRecord | None"


class FoundRecord(msgspec.Struct, frozen=True):
    """Texts that the tree found; fractions are of all reports.

    Parameters
    ----------
    texts : in UTF-8; a character that the last level cuts is written as its bytes.
    whole : False for the beginnings of one or several texts, as long as the last level.
    frequency, std_error, low, high : as of FoundTexts.
    significant : whether the interval excludes 0. A text is found because it passed a threshold; where that
        alone may explain its estimate, the interval reaches 0, and such texts are the ones that may be false.
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
    significant: list[bool]
    unexplained: float
    unexplained_error: float
    tested: int
    level_reports: list[int]


@one_blas_thread()
def grow_windows(collection: Collection, joined: Joined, alphabet: str, rate: float) -> FoundTexts | None:
    """Grow the tree from the counts of joined windows; None with fewer reports than minimum_reports.

    Errors are also valid if the same clients report in every window, as `shared` of a roll-up.

    Parameters
    ----------
    collection : of the windows, a prefix tree.
    joined : counts of the windows.
    alphabet : characters of the texts; empty for any.
    rate : largest expected share of false texts among those found, in (0, 1).

    Raises
    ------
    ValueError as `grow`.
    """
    if joined.counts.reports < collection.minimum_reports:
        return None
    return grown(collection, joined.counts.counts, list(joined.reports.values()), alphabet, rate)


def growth_record(
    collection: Collection, coverage: WindowCoverage, joined: Joined, rate: float, found: FoundTexts | None
) -> GrowthRecord:
    """Put what was found into its record."""
    return GrowthRecord(
        **past_fields(collection, coverage, joined),
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
        significant=found.significant.tolist(),
        unexplained=share,
        unexplained_error=error,
        tested=found.tested,
        level_reports=found.reports.tolist(),
    )
