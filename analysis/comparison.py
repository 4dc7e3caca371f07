"""Which shares of a collection differ between two periods."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from deniable.aggregator.history.period_shares import PeriodShares, shares_of_roll_up
from deniable.aggregator.history.periods import Period, iso
from deniable.aggregator.history.rollup import WindowCoverage, coverage_of
from deniable.aggregator.history.window_reader import Joined
from deniable.analysis.differences import SideShares, compare_shares
from deniable.analysis.errors import AnalysisError, WrongArgumentError
from deniable.analysis.periods import check_window
from deniable.analysis.roll_up import estimated
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.estimate_table import OTHER
from deniable.analysis.tables.record_table import columns_of, record_table
from deniable.estimators.arrays import finite_or_none
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import FIT
from deniable.estimators.rollup.overlap import client_overlap

COMPARISON_VERSION = 1


class JoinedPeriod(NamedTuple):
    """The final windows of a period, joined."""

    period: Period
    joined: Joined


class ComparisonRecord(msgspec.Struct, frozen=True):
    """A comparison for programs: one JSON object; columns of equal length.

    `between` and `and` are the periods in ISO 8601, of `windows` and `reports` each; `coverage` says which
    windows of each were compared, and which were left out. `first_share` and
    `second_share` are unbiased estimates, which may be negative; `rate` is the false-discovery rate of
    `significant`; `std_error` is null where no error can be stated. `omitted` values, those with the largest
    p-values, are left out; they are tested with the others all the same. `fit_p_value` is of the test of fit
    of each period.

    Errors, intervals, `p_value` and `significant` are of the randomizers' noise alone, so a difference is one
    between those who reported: where other people report in each period, shares may differ although nobody
    changed. Of two periods of 10,000 reports of k-RR each, 16 values and epsilon 4, `significant` then marks
    a value in 49 % of runs; docs/analysis.md has more.
    """

    version: int
    collection: str
    fingerprint: str
    between: str
    other_period: str = msgspec.field(name="and")
    windows: tuple[int, int]
    reports: tuple[int, int]
    coverage: tuple[WindowCoverage, WindowCoverage]
    rate: float
    values: list[str]
    first_share: list[float]
    second_share: list[float]
    difference: list[float]
    low: list[float]
    high: list[float]
    std_error: list[float | None]
    p_value: list[float]
    significant: list[bool]
    omitted: int = 0
    fit_p_value: tuple[float, float] = (1.0, 1.0)

    def fits(self) -> list[tuple[str, dict[str, float]]]:
        """Return each period and its test of fit, as the diagnostics of an estimate have it."""
        periods = zip((self.between, self.other_period), self.fit_p_value, strict=True)
        return [(period, {FIT: fit}) for period, fit in periods]

    def table(self) -> ArrowTable:
        """Return a row for each value; `about` is the record without its columns."""
        return record_table(self, "a table of a comparison")


def cut(record: ComparisonRecord, most: int) -> ComparisonRecord:
    """Leave out all but `most` values, >= 1, of the smallest p-values; the others keep their order."""
    kept = np.sort(np.argsort(record.p_value, kind="stable")[:most]).tolist()
    columns = {name: [getattr(record, name)[place] for place in kept] for name in columns_of(record)}
    omitted = record.omitted + len(record.values) - len(kept)
    return msgspec.structs.replace(record, omitted=omitted, **columns)


def check_comparable(collection: Collection, first: Period, second: Period) -> None:
    """Raise WrongArgumentError if the periods overlap or hold no window, or the collection is of numbers."""
    if first.start < second.end and second.start < first.end:
        raise WrongArgumentError(
            f"the periods must not overlap, since no report may be in both: got {first} and {second}"
        )
    if collection.number is not None:
        raise WrongArgumentError(
            f"compare needs shares of values, and {collection.name} is of numbers: compare the intervals of "
            "mean and quantiles that deniable rollup prints for each period"
        )
    for period in (first, second):
        check_window(collection, period)


def compare_periods(
    collection: Collection, first: JoinedPeriod, second: JoinedPeriod, rate: float
) -> ComparisonRecord:
    """Compare every value's share; errors also hold if the same clients report in every window of a period.

    They are of the randomizers' noise alone, not of who reported in each period, see `ComparisonRecord`. Of
    RAPPOR of any text, the rate is not measured.

    Parameters
    ----------
    collection : of both, see `check_comparable`.
    first, second : the periods.
    rate : false-discovery rate, in (0, 1).

    Raises
    ------
    AnalysisError if a period has fewer reports than minimum_reports, or no estimate fits its counts.
    """
    _check_change(collection, first, second)
    shares = [
        shares_of_roll_up(collection, estimated(collection, side.joined, side.period))
        for side in (first, second)
    ]
    sides = [_side(collection, *each) for each in zip((first, second), shares, strict=True)]
    found = compare_shares(sides[0], sides[1], rate)
    return ComparisonRecord(
        version=COMPARISON_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        between=f"{iso(first.period.start)}/{iso(first.period.end)}",
        other_period=f"{iso(second.period.start)}/{iso(second.period.end)}",
        windows=(len(first.joined.reports), len(second.joined.reports)),
        reports=(first.joined.counts.reports, second.joined.counts.reports),
        coverage=(
            coverage_of(collection, first.period, first.joined),
            coverage_of(collection, second.period, second.joined),
        ),
        rate=rate,
        values=[*collection.labels(), *([OTHER] if collection.other else [])],
        first_share=found.first.tolist(),
        second_share=found.second.tolist(),
        difference=found.difference.tolist(),
        low=found.low.tolist(),
        high=found.high.tolist(),
        std_error=finite_or_none(found.std_error),
        p_value=found.p_value.tolist(),
        significant=found.significant.tolist(),
        fit_p_value=(shares[0].fit_p_value, shares[1].fit_p_value),
    )


def compare_joined(
    collection: Collection, periods: Sequence[Period], joined: Sequence[Joined], rate: float, most: int
) -> ComparisonRecord:
    """Compare two periods, and keep at most so many values.

    Parameters
    ----------
    collection, rate : as of `compare_periods`.
    periods, joined : both periods, and the windows of each.
    most : values to keep, >= 1.

    Raises
    ------
    AnalysisError as `compare_periods`.
    """
    first, second = (JoinedPeriod(*each) for each in zip(periods, joined, strict=True))
    return cut(compare_periods(collection, first, second, rate), most)


def _check_change(collection: Collection, first: JoinedPeriod, second: JoinedPeriod) -> None:
    """Raise AnalysisError if one period holds windows of other parameters alone: no file has both."""
    for side, another in ((first, second), (second, first)):
        if side.joined.others and not side.joined.reports and another.joined.reports:
            raise AnalysisError(
                f"{side.period} holds windows of {collection.name} with other parameters only, and "
                f"{another.period} some with these: periods on both sides of a change of parameters "
                "cannot be compared; see the roll-up of each under its collection file, or of both periods "
                "with deniable rollup --former FILE"
            )


def _side(collection: Collection, side: JoinedPeriod, found: PeriodShares) -> SideShares:
    """Return a period's shares; a client that returns may add its permanent noise in every window."""
    windows = np.array(list(side.joined.reports.values()))
    repeated = client_overlap(windows) if collection.mechanism.repeats_noise else 1.0
    step = repeated * collection.mechanism.max_step / side.joined.counts.reports
    return SideShares(found.share, found.shared_error, step)
