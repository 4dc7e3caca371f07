"""Estimates of a collection's name under other parameters, beside those under the present ones.

Rule: an estimate says what it is of, but not all parameters. Where shares may be of other reports, they are
not joined.
"""

from collections.abc import Sequence
from math import inf, nan

import numpy as np
from msgspec.structs import replace

from deniable.aggregator.history.inverse_variance import join_shares
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.history_part import named, reason_of_lists
from deniable.estimators.arrays import finite_or_none
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import rounded_up_short

NAMES_SHOWN = 5
TEXTS = ("rappor", "local-hash", "local-hash-longitudinal", "prefix-tree")  # mechanisms of any text
FORMS = ("number", "k-rr-pair", "one-hot-pair", "rappor-k-hot")  # a report of these has another form
COLLIDING = "local-hash-longitudinal"  # its error of collisions is alike in all windows


def difference_of(record: EstimateRecord, present: Collection) -> str:
    """Say what differs from the present parameters, a phrase each.

    Values that the record leaves out are not known, so then none is said to be new.
    """
    mechanism, seconds = present.mechanism, record.window_end - record.window_start
    pairs = (
        ("mechanism", record.mechanism, mechanism.name),
        ("epsilon", rounded_up_short(record.epsilon), rounded_up_short(mechanism.epsilon)),
        ("window_seconds", str(seconds), str(present.window_seconds)),
    )
    found = [f"{name} {before} to {after}" for name, before, after in pairs if before != after]
    gone, new = _list_changes(record, present)
    found += [f"only then: {named(gone, NAMES_SHOWN)}"] if gone else []
    found += [f"only now: {named(new, NAMES_SHOWN)}"] if new else []
    return "; ".join(found) or "other parameters of the mechanism"


def why_not_comparable(record: EstimateRecord, present: Collection) -> str:
    """Return why shares do not mean the same as the present ones; empty if they do."""
    mechanism = present.mechanism
    if record.mechanism != mechanism.name and {record.mechanism, mechanism.name} & {*FORMS}:
        return "a report has another form"
    takes_any = present.other or present.takes_any_text
    took_any = record.mechanism in TEXTS or record.other is not None
    differ = any(_list_changes(record, present)) or record.omitted > 0
    if not differ and record.mechanism in FORMS:  # whose records need not say what a report could be of
        took_any = takes_any
    return reason_of_lists(differ=differ, took_any=took_any, takes_any=takes_any)


def joined(
    present: EstimateRecord, other: EstimateRecord, listed: frozenset[str] = frozenset()
) -> EstimateRecord:
    """Join two estimates of one window, of different reports, as `deniable rollup --former` does.

    Unconstrained estimates, by inverse variance; only the mean is clipped to [0, 1]. Records of older
    versions have none: of those the published shares are joined, which are too high where values are rare.
    A value of one list has the share of that side's reports. Steps of a number are smoothed, and stay as they
    are in `present`.

    Parameters
    ----------
    present : under the present parameters.
    other : comparable with it, see `why_not_comparable`; without any error it adds nothing.
    listed : the present list. Values of it that `present` leaves out are left out here, too.
    """
    if present.mean is not None or all(each is None for each in other.std_error):
        return present
    left_out = listed if present.omitted else frozenset()
    values = [*dict.fromkeys([*present.values, *(each for each in other.values if each not in left_out)])]
    sides = _columns(present, values), _columns(other, values)
    shares, errors, misfits = (np.array(both) for both in zip(*sides, strict=True))
    found = join_shares(shares, errors, errors, misfits)
    reports, frequency = present.reports + other.reports, np.clip(found.share, 0, 1)
    return replace(
        present,
        reports=reports,
        values=values,
        unbiased=found.share.tolist(),
        frequency=frequency.tolist(),
        count=(frequency * reports).tolist(),
        std_error=finite_or_none(found.std_error),
        low=found.low.tolist(),
        high=found.high.tolist(),
        significant=found.significant.tolist(),
        low_all=[],
        high_all=[],
        misfit_error=[],
        unreliable=[],
        discovered_at=[],
    )


def _columns(record: EstimateRecord, values: Sequence[str]) -> tuple[list[float], ...]:
    """Shares, errors and misfits of these values; NaN, inf and 0 where there is none."""
    own = {value: place for place, value in enumerate(record.values)}
    places = [own.get(value) for value in values]
    shares = record.unbiased or record.frequency
    errors = [inf if each is None else each for each in record.std_error]
    collisions = record.diagnostics.get("collision_error", 0.0) if record.mechanism == COLLIDING else 0.0
    misfits = record.misfit_error or [collisions] * len(shares)
    return (
        [nan if each is None else shares[each] for each in places],
        [inf if each is None else errors[each] for each in places],
        [0.0 if each is None else misfits[each] for each in places],
    )


def _list_changes(record: EstimateRecord, present: Collection) -> tuple[list[str], list[str]]:
    """Values that only the record has, and that only the present list has."""
    labels = present.labels()
    listed, known = frozenset(labels), frozenset(record.values)
    gone = [each for each in record.values if each not in listed]
    return gone, [] if record.omitted else [each for each in labels if each not in known]
