"""Which shares of a collection differ between two periods."""

from typing import NamedTuple

import msgspec
import numpy as np

from aggregator.history.periods import Period, iso
from aggregator.history.rollup import roll_up, too_few_reports
from aggregator.history.window_reader import Joined
from analysis.differences import Differences, compare_shares, unbiased_shares
from analysis.errors import AnalysisError, arrow
from analysis.tables.arrow_table import ArrowTable
from analysis.tables.estimate_table import OTHER
from estimators.arrays import FloatArray
from estimators.collection import Collection
from estimators.frequency.estimate import ScalarEstimate
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.square_wave import SquareWave

COMPARISON_VERSION = 1


class JoinedPeriod(NamedTuple):
    """The final windows of a period, joined."""

    period: Period
    joined: Joined


class PeriodShares(NamedTuple):
    """Shares of a period. Arrays float64 (n,), fractions of all reports.

    Parameters
    ----------
    share : unbiased, so it may be negative or above 1; of RAPPOR of any text clipped at 0.
    std_error : if every report comes from another client; inf where none can be stated.
    shared_error : also valid if the same clients report in every window.
    misfit : the part of both that is alike in every window: of RAPPOR of any text from strings outside the
        candidates, of longitudinal hashing from collisions; 0 for others.
    mean : of a number, in its units; None for other mechanisms.
    """

    share: FloatArray
    std_error: FloatArray
    shared_error: FloatArray
    misfit: FloatArray
    mean: ScalarEstimate | None


class ComparisonRecord(msgspec.Struct, frozen=True):
    """A comparison for programs: one JSON object; columns of equal length.

    `between` and `and` are the periods in ISO 8601, of `windows` and `reports` each. `first_share` and
    `second_share` are unbiased estimates, which may be negative; `rate` is the false-discovery rate of
    `significant`; `std_error` is null where no error can be stated.
    """

    version: int
    collection: str
    fingerprint: str
    between: str
    other_period: str = msgspec.field(name="and")
    windows: tuple[int, int]
    reports: tuple[int, int]
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

    def table(self) -> ArrowTable:
        """Return a row for each value; `about` is the record without its columns."""
        pa = arrow("a table of a comparison")
        names = [name for name in self.__struct_fields__ if isinstance(getattr(self, name), list)]
        kinds = {"values": pa.string(), "significant": pa.bool_()}
        columns = {
            "value" if name == "values" else name: pa.array(
                getattr(self, name), kinds.get(name, pa.float64())
            )
            for name in names
        }
        about = {name: each for name, each in msgspec.to_builtins(self).items() if not isinstance(each, list)}
        return ArrowTable(pa.table(columns), about)


def check_comparable(collection: Collection, first: Period, second: Period) -> None:
    """Raise AnalysisError if the periods overlap, or the collection is of numbers."""
    if first.start < second.end and second.start < first.end:
        raise AnalysisError(
            f"the periods must not overlap, since no report may be in both: got {first} and {second}"
        )
    if isinstance(collection.mechanism, SquareWave):
        raise AnalysisError(
            f"compare needs shares of values, and {collection.name} is of numbers: compare the intervals of "
            "mean and quantiles that deniable rollup prints for each period"
        )


def compare_periods(
    collection: Collection, first: JoinedPeriod, second: JoinedPeriod, rate: float
) -> ComparisonRecord:
    """Compare every value's share; errors also hold if the same clients report in every window of a period.

    Of RAPPOR of any text, shares are clipped at 0, and the rate is not measured.

    Parameters
    ----------
    collection : of both, see `check_comparable`.
    first, second : the periods.
    rate : false-discovery rate, in (0, 1).

    Raises
    ------
    AnalysisError if a period has fewer reports than minimum_reports, or no estimate fits its counts.
    """
    found = compare_shares(_shares(collection, first), _shares(collection, second), rate)
    names = [*collection.labels(), *([OTHER] if collection.other else [])]
    return _record_of(collection, first, second, rate, names, found)


def _shares(collection: Collection, side: JoinedPeriod) -> tuple[FloatArray, FloatArray]:
    found = period_shares(collection, side)
    return found.share, found.shared_error


def _record_of(
    collection: Collection,
    first: JoinedPeriod,
    second: JoinedPeriod,
    rate: float,
    names: list[str],
    found: Differences,
) -> ComparisonRecord:
    return ComparisonRecord(
        version=COMPARISON_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        between=f"{iso(first.period.start)}/{iso(first.period.end)}",
        other_period=f"{iso(second.period.start)}/{iso(second.period.end)}",
        windows=(len(first.joined.reports), len(second.joined.reports)),
        reports=(first.joined.counts.reports, second.joined.counts.reports),
        rate=rate,
        values=names,
        first_share=found.first.tolist(),
        second_share=found.second.tolist(),
        difference=found.difference.tolist(),
        low=found.low.tolist(),
        high=found.high.tolist(),
        std_error=[each if np.isfinite(each) else None for each in found.std_error.tolist()],
        p_value=found.p_value.tolist(),
        significant=found.significant.tolist(),
    )


def period_shares(collection: Collection, side: JoinedPeriod) -> PeriodShares:
    """Estimate the shares of a period without constraints.

    Raises
    ------
    AnalysisError if it has fewer reports than minimum_reports, or no estimate fits its counts.
    """
    counts = side.joined.counts
    try:
        result = roll_up(collection, side.joined)
    except (ValueError, ArithmeticError) as error:
        raise AnalysisError(f"no estimate fits the counts of {side.period}: {error}") from error
    if result is None:
        raise AnalysisError(too_few_reports(collection, side.joined, f" in {side.period}"))
    independent, shared = result.independent, result.shared
    share = unbiased_shares(counts.counts, counts.cohort_sizes, independent, collection.mechanism)
    misfit = np.zeros(len(share))
    errors = [independent.std_error, shared.std_error]
    if isinstance(collection.mechanism, Rappor) and shared.misfit is not None:
        errors = [np.where(shared.misfit.unreliable, np.inf, each) for each in errors]
        misfit = shared.misfit.std_error
    elif isinstance(collection.mechanism, LongitudinalHash):
        misfit += independent.diagnostics["collision_error"]
    return PeriodShares(share, errors[0], errors[1], misfit, independent.mean)
