"""What `deniable changes` prints for people: figures that noise took out of their range are at its ends."""

from collections.abc import Mapping, Sequence

from deniable.aggregator.history.periods import iso
from deniable.aggregator.history.share_sequences import ShareSequence
from deniable.aggregator.history.window_shares import units_of
from deniable.aggregator.records.share_change import ShareChange
from deniable.deploy.offline.estimate_table import printable_name
from deniable.deploy.query.value_rows import rows_of
from deniable.estimators.collection import Collection
from deniable.protocol.words import number_of

NO_SEQUENCE = "no window has minimum_reports: there are no intervals"


def change_lines(
    collection: Collection, changes: Sequence[ShareChange], rate: float, newest: Mapping[str, float]
) -> list[str]:
    """Return a line for each change, for people.

    Parameters
    ----------
    collection : of the changes.
    changes : by time.
    rate : false alarms a year, at most, while nothing changes.
    newest : unbiased figures of the newest window by label, in units: a share may have come back since.
    """
    is_number = collection.number is not None
    what, form = ("mean", "g") if is_number else ("share", ".4f")
    said, shown = f"at most {rate:g} false alarms a year", units_of(collection).shown
    if not changes:
        return [f"no {what} changed ({said})"]
    lines = [f"{number_of(len(changes), 'change')} ({said}):"]
    for each in changes:
        now = newest.get(each.value)
        part = ", maybe a part of it: the next final window states it anew" if each.partial else ""
        change = min(max(each.change, each.low), each.high)
        in_newest = "" if now is None else f"; in the newest window {shown(now):{form}}"
        lines.append(
            f"  {printable_name(each.value)}: {shown(each.before):{form}} to {shown(each.after):{form}} "
            f"since {iso(each.since)}, by {change:+{form}} ({each.low:+{form}} to {each.high:+{form}}), "
            f"found {iso(each.found)}{part}{in_newest}"
        )
    return lines


def mean_lines(sequence: ShareSequence | None) -> list[str]:
    """Return lines about the mean of a number, for people; noise may take it out of its interval."""
    if sequence is None:
        return [NO_SEQUENCE]
    [mean], [low], [high] = sequence.share, sequence.low, sequence.high
    return [
        _head(sequence),
        f"mean: {min(max(mean, low), high):.6g}, from {low:.6g} to {high:.6g}",
    ]


def _head(sequence: ShareSequence) -> str:
    return (
        f"{number_of(sequence.reports, 'report')} of {number_of(sequence.windows, 'window')}; 95 % intervals "
        "at every look"
    )


def share_lines(sequence: ShareSequence | None) -> list[str]:
    """Return a table for people, the largest shares first; noise may take a share out of its interval."""
    if sequence is None:
        return [NO_SEQUENCE]
    lines = [
        _head(sequence),
        "left: of each value; right: of all values at once",
    ]
    if sequence.repeated_noise:
        lines.append("they hold whatever the windows have in common, as clients may return")

    def figures(place: int) -> str:
        columns = (sequence.low, sequence.high, sequence.low_all, sequence.high_all)
        share = min(max(sequence.share[place], sequence.low[place]), sequence.high[place])
        return f"{share:>10.6f} {' '.join(f'{column[place]:>9.6f}' for column in columns)}"

    order = sorted(range(len(sequence.values)), key=lambda place: -sequence.share[place])
    heads = f"{'share':>10} {'low':>9} {'high':>9} {'low':>9} {'high':>9}"
    return [*lines, *rows_of(sequence.values, order, heads, figures)]
