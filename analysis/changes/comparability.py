"""What a change of parameters changed, and whether shares before and after it mean the same."""

from typing import NamedTuple

from deniable.aggregator.records.history_part import named, reason_of_lists
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import rounded_up_short
from deniable.estimators.mechanisms.mechanism import number_of, pair_of
from deniable.estimators.mechanisms.square_wave import SquareWave

NAMES_SHOWN = 10


class DefinitionChange(NamedTuple):
    """A change from one definition of a collection to a later one.

    Parameters
    ----------
    changed : what differs, a phrase each, such as "epsilon 1 to 2".
    gone, new : values that only the former, and only the later one has, in its order.
    reason : why no shares may be joined; empty if those of values in both may.
    """

    changed: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    reason: str


def change_between(former: Collection, later: Collection) -> DefinitionChange:
    """Compare two definitions of one name."""
    is_number = former.number is not None or later.number is not None
    before, after = ((), ()) if is_number else (former.labels(), later.labels())
    in_both = frozenset(before) & frozenset(after)
    gone = tuple(each for each in before if each not in in_both)
    new = tuple(each for each in after if each not in in_both)
    return DefinitionChange(
        tuple(_changed(former, later)), gone, new, _reason(former, later, bool(gone or new))
    )


def sentence_of(change: DefinitionChange) -> str:
    """Return the change as one line."""
    parts = [*change.changed]
    parts += [f"only before: {named(change.gone, NAMES_SHOWN)}"] if change.gone else []
    parts += [f"only since: {named(change.new, NAMES_SHOWN)}"] if change.new else []
    return "; ".join(parts) or "other parameters of the mechanism"


def _changed(former: Collection, later: Collection) -> list[str]:
    pairs = (
        ("mechanism", former.mechanism.name, later.mechanism.name),
        ("epsilon", rounded_up_short(former.mechanism.epsilon), rounded_up_short(later.mechanism.epsilon)),
        ("window_seconds", str(former.window_seconds), str(later.window_seconds)),
        ("other", str(former.other).lower(), str(later.other).lower()),
        ("memoize", str(former.memoize).lower(), str(later.memoize).lower()),
    )
    return [f"{name} {before} to {after}" for name, before, after in pairs if before != after]


def _reason(former: Collection, later: Collection, lists_differ: bool) -> str:
    if former.canary or later.canary:
        return "reports of a canary are no person's"
    for is_kind, what in ((number_of, "steps of a number"), (pair_of, "pairs of fields")):
        if (is_kind(former.mechanism) is None) != (is_kind(later.mechanism) is None):
            return f"only one of them has {what}"
    if former.takes_several != later.takes_several:
        return "a report is of several values in only one of them"
    if (before := former.number) is not None and (after := later.number) is not None:
        return "" if _range(before) == _range(after) else "the range of the number differs"
    if lists_differ and pair_of(later.mechanism) is not None:
        return "the fields of the pair have other values"
    return reason_of_lists(differ=lists_differ, took_any=_takes_any(former), takes_any=_takes_any(later))


def _range(mechanism: SquareWave) -> tuple[float, float]:
    return mechanism.minimum, mechanism.maximum


def _takes_any(collection: Collection) -> bool:
    """Whether every client can report, whatever its value."""
    return collection.other or collection.takes_any_text
