"""One estimate over windows that were counted under several definitions of a collection.

Rule: counts are added up within a definition only. The estimates of the definitions are joined, value by
value, by inverse variance, where a share means the same in all of them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from deniable.aggregator.history.inverse_variance import WeightedShares, join_shares
from deniable.aggregator.history.period_shares import PeriodShares, shares_of_roll_up
from deniable.aggregator.history.periods import Period, merged
from deniable.aggregator.history.rollup import WindowCoverage
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import NumberMean
from deniable.aggregator.records.history_part import HistoryPart
from deniable.analysis.changes.comparability import DefinitionChange, change_between, sentence_of
from deniable.analysis.errors import AnalysisError
from deniable.analysis.roll_up import fitted
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.estimate_table import OTHER
from deniable.analysis.tables.record_table import record_table
from deniable.estimators.arrays import finite_or_none
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import QUANTILE_975

JOINED_VERSION = 1


class JoinedHistoryRecord(msgspec.Struct, frozen=True):
    """A roll-up over changes for programs: one JSON object; columns of equal length.

    `share` is a mean of unbiased estimates, weighted by inverse variance, and may be negative. `std_error`,
    `low` and `high` are for reports of different clients each; `shared_…` hold whatever the windows have in
    common, and `significant` uses them. Errors are null where none can be stated. `parts_of_value` is the
    number of parts that list the value. `p_value` tests that they have the same share; where `differs`, they
    do not, and `share` is a mean of different shares. `passed_over` are windows under definitions that were
    not given, by fingerprint. `coverage` says which windows were counted under the definitions given, joined
    or not comparable, and which are missing or incomplete. `mean`, of a number, is one over all parts, too.

    Errors, intervals, `p_value` and `differs` are of the randomizers' noise alone, so a difference is one
    between those who reported: if other people report in each part, shares differ by chance although nobody
    changed. With two parts of 1,000 reports of k-RR, 16 values and epsilon 4, `differs` then marks a value
    in 54 % of runs, and 82 % of the intervals hold the share among all people; docs/history.md has more.
    """

    version: int
    collection: str
    fingerprint: str
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    reports: int
    parts: list[HistoryPart]
    coverage: WindowCoverage
    passed_over: dict[str, int]
    values: list[str]
    share: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]
    significant: list[bool]
    shared_std_error: list[float | None]
    shared_low: list[float]
    shared_high: list[float]
    parts_of_value: list[int]
    p_value: list[float]
    differs: list[bool]
    mean: NumberMean | None

    def table(self) -> ArrowTable:
        """Return a row for each value; `about` is the record without its columns."""
        return record_table(self, "a table of a joined history")


class Definition(NamedTuple):
    """One definition of the name, and what was counted under it in the period.

    Parameters
    ----------
    collection : as its collection file says.
    joined : its final windows in the period.
    """

    collection: Collection
    joined: Joined


def join_history(present: Definition, former: Sequence[Definition], period: Period) -> JoinedHistoryRecord:
    """Estimate under each definition, and join what is comparable with the present one.

    Parameters
    ----------
    present : the definition that the others are compared with; it may have no windows yet.
    former : of the same name, with other fingerprints.
    period : that was read.

    Raises
    ------
    AnalysisError if no definition has minimum_reports, or no estimate fits the counts of one.
    """
    definitions = [each for each in (*former, present) if each.joined.reports]
    definitions.sort(key=lambda each: min(each.joined.reports))
    found: list[tuple[Definition, PeriodShares]] = []
    parts: list[HistoryPart] = []
    for each in definitions:
        change = change_between(each.collection, present.collection)
        reason, shares = change.reason, None
        if not reason:
            result = fitted(each.collection, each.joined, period)
            shares = shares_of_roll_up(each.collection, result) if result else None
            least = each.collection.minimum_reports
            reason = "" if shares else f"fewer reports than minimum_reports = {least}"
        if shares is not None:
            found.append((each, shares))
        fit = shares.fit_p_value if shares else None
        parts.append(_part(each, present.collection, change, reason, fit))
    if not found:
        raise AnalysisError(
            f"no definition of {present.collection.name} has an estimate to join in {period}: "
            f"{'; '.join(each.not_joined for each in parts) or 'there are no windows'}; "
            f"give {'a longer period' if parts else 'a period of which there are final windows'}"
        )
    return _record(present, former, period, parts, found)


def _part(
    definition: Definition, present: Collection, change: DefinitionChange, not_joined: str, fit: float | None
) -> HistoryPart:
    collection, joined = definition
    is_present = collection.fingerprint == present.fingerprint
    return HistoryPart(
        fingerprint=f"{collection.fingerprint:016x}",
        start=min(joined.reports),
        end=collection.window_end(max(joined.reports)),
        windows=len(joined.reports),
        reports=joined.counts.reports,
        mechanism=collection.mechanism.name,
        epsilon=collection.mechanism.epsilon,
        change="" if is_present else sentence_of(change),
        not_joined=not_joined,
        fit_p_value=fit,
    )


def _record(
    present: Definition,
    former: Sequence[Definition],
    period: Period,
    parts: list[HistoryPart],
    found: list[tuple[Definition, PeriodShares]],
) -> JoinedHistoryRecord:
    collection = present.collection
    names = _names([definition.collection for definition, _ in found])
    joined = _joined(names, found)
    given = {each.collection.fingerprint for each in (present, *former)}
    passed_over = {
        f"{fingerprint:016x}": windows
        for fingerprint, windows in present.joined.others.items()
        if fingerprint not in given
    }
    return JoinedHistoryRecord(
        version=JOINED_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        start=period.start,
        end=period.end,
        reports=sum(definition.joined.counts.reports for definition, _ in found),
        parts=parts,
        coverage=_coverage(collection, period, (present, *former), passed_over),
        passed_over=passed_over,
        values=names,
        share=joined.share.tolist(),
        std_error=finite_or_none(joined.std_error),
        low=joined.low.tolist(),
        high=joined.high.tolist(),
        significant=joined.significant.tolist(),
        shared_std_error=finite_or_none(joined.shared_std_error),
        shared_low=joined.shared_low.tolist(),
        shared_high=joined.shared_high.tolist(),
        parts_of_value=joined.parts.tolist(),
        p_value=joined.p_value.tolist(),
        differs=joined.differs.tolist(),
        mean=_mean([shares for _, shares in found]),
    )


def _names(collections: Sequence[Collection]) -> list[str]:
    """Values of all definitions, the newest definition's first; `(other)` only if it means the same."""
    if collections[-1].number is not None:
        return []  # shares of its steps are smoothed, so not unbiased
    names = dict.fromkeys(name for each in reversed(collections) for name in each.labels())
    lists = {(each.labels(), each.other) for each in collections}
    return [*names, *([OTHER] if len(lists) == 1 and collections[-1].other else [])]


def _joined(names: Sequence[str], found: Sequence[tuple[Definition, PeriodShares]]) -> WeightedShares:
    """Join each part's figures of its values; its `(other)`, behind its values, only if asked for."""
    sides = [shares.placed((*each.collection.labels(), OTHER), names) for each, shares in found]
    columns = ("share", "std_error", "shared_error", "misfit")
    return join_shares(*(np.array([getattr(side, name) for side in sides]) for name in columns))


def _mean(found: Sequence[PeriodShares]) -> NumberMean | None:
    means = [each.mean for each in found if each.mean is not None]
    if not means:
        return None
    values, errors = (np.array([getattr(each, name) for each in means]) for name in ("value", "std_error"))
    least = errors.min()
    weights = (least / errors) ** 2  # squares of fractions: those of a number's units may overflow
    value, error = float((weights * values).sum() / weights.sum()), float(least / np.sqrt(weights.sum()))
    return NumberMean(value, error, value - QUANTILE_975 * error, value + QUANTILE_975 * error)


def _coverage(
    present: Collection,
    period: Period,
    read: Sequence[Definition],
    passed_over: Mapping[str, int],
) -> WindowCoverage:
    """Return one coverage for all definitions, whose windows may differ in length.

    Whole windows of the present one are expected; only what none of the definitions counted is missing.
    """
    seconds = present.window_seconds
    whole = period.whole_windows(seconds)
    counted = _spans([(each.window_seconds, [*joined.reports]) for each, joined in read])
    incomplete = _spans([(each.window_seconds, joined.incomplete) for each, joined in read])
    return WindowCoverage(
        start=whole.start,
        end=whole.end,
        expected=period.windows(seconds),
        windows=len({(start, each.window_seconds) for each, joined in read for start in joined.reports}),
        missing=_outside(whole, sorted([*counted, *incomplete])),
        incomplete=incomplete,
        passed_over=dict(passed_over),
        foreign=max(joined.foreign for _, joined in read),
    )


def _spans(windows: Sequence[tuple[int, Sequence[int]]]) -> list[Period]:
    """Windows by their seconds and starts as spans, sorted; spans of two definitions may overlap."""
    return sorted(span for seconds, starts in windows for span in merged(sorted(starts), seconds))


def _outside(whole: Period, spans: Sequence[Period]) -> list[Period]:
    """Return the parts of a period that no span covers; spans sorted."""
    missing, until = list[Period](), whole.start
    for span in spans:
        if span.start > until:
            missing.append(Period(until, min(span.start, whole.end)))
        until = max(until, span.end)
    if until < whole.end:
        missing.append(Period(until, whole.end))
    return [each for each in missing if each.start < each.end]
