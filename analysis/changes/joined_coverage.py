"""Which windows of a period are joined across definitions, whose windows may differ in length."""

from collections.abc import Mapping, Sequence

from deniable.aggregator.history.periods import Period, merged
from deniable.aggregator.history.rollup import WindowCoverage
from deniable.aggregator.history.window_reader import Joined
from deniable.estimators.collection import Collection


def joined_coverage(
    present: Collection,
    period: Period,
    read: Sequence[tuple[Collection, Joined]],
    passed_over: Mapping[str, int],
) -> WindowCoverage:
    """Return one coverage for all definitions: only what none of them counted is missing.

    Parameters
    ----------
    present : the definition whose whole windows are expected.
    period : as asked.
    read : every definition that was given, and its windows in the period.
    passed_over : windows under other definitions, by fingerprint in hex.
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
