"""Estimates of a collection's name under other parameters, beside those under the present ones.

Rule: an estimate says what it is of, but not all parameters. Where shares may be of other reports, they are
not joined.
"""

import numpy as np
from msgspec.structs import replace

from aggregator.records.estimate import EstimateRecord
from estimators.collection import ANY_TEXT, Collection
from estimators.frequency.intervals.unified import unified_interval

NAMES_SHOWN = 5
TEXTS = ("rappor", "local-hash", "local-hash-longitudinal", "prefix-tree")  # mechanisms of any text
FORMS = ("number", "k-rr-pair", "one-hot-pair", "rappor-k-hot")  # a report of these has another form


def difference_of(record: EstimateRecord, present: Collection) -> str:
    """Say what differs from the present parameters, a phrase each.

    Values that the record leaves out are not known, so then none is said to be new.
    """
    mechanism, seconds = present.mechanism, record.window_end - record.window_start
    pairs = (
        ("mechanism", record.mechanism, mechanism.name),
        ("epsilon", f"{record.epsilon:.6g}", f"{mechanism.epsilon:.6g}"),
        ("window_seconds", str(seconds), str(present.window_seconds)),
    )
    found = [f"{name} {before} to {after}" for name, before, after in pairs if before != after]
    gone, new = _list_changes(record, present)
    found += [f"only then: {_named(gone)}"] if gone else []
    found += [f"only now: {_named(new)}"] if new else []
    return "; ".join(found) or "other parameters of the mechanism"


def why_not_comparable(record: EstimateRecord, present: Collection) -> str:
    """Return why shares do not mean the same as the present ones; empty if they do."""
    mechanism = present.mechanism
    if record.mechanism != mechanism.name and {record.mechanism, mechanism.name} & {*FORMS}:
        return "a report has another form"
    if not any(_list_changes(record, present)) and not record.omitted:
        return ""
    takes_any = record.mechanism in TEXTS or record.other is not None
    if takes_any and (present.other or isinstance(mechanism, ANY_TEXT)):
        return ""
    return "the lists differ, and without `other` a share is one of listed values alone"


def joined(present: EstimateRecord, other: EstimateRecord) -> EstimateRecord:
    """Join two estimates of one window, of different reports, where they have the same value.

    Means by inverse variance of the published shares: of rare values these are clipped at 0, so the mean of
    two is as biased as each of them.

    Parameters
    ----------
    present : under the present parameters; what `other` lacks stays as it is here.
    other : comparable with it, see `why_not_comparable`.
    """
    places = {value: place for place, value in enumerate(other.values)}
    errors = {place: error for place, error in enumerate(other.std_error) if error}
    common = [
        (here, places[value], error)
        for here, (value, error) in enumerate(zip(present.values, present.std_error, strict=True))
        if error and places.get(value) in errors
    ]
    if not common:
        return present
    here, there = [each[0] for each in common], [each[1] for each in common]
    shares = np.array([[present.frequency[i] for i in here], [other.frequency[i] for i in there]])
    weights = np.array([[each[2] for each in common], [errors[i] for i in there]]) ** -2.0
    share, error = (weights * shares).sum(axis=0) / weights.sum(axis=0), weights.sum(axis=0) ** -0.5
    low, high = unified_interval(share, error)
    figures = {"frequency": share, "std_error": error, "low": low, "high": high}
    columns = {name: [*getattr(present, name)] for name in figures}
    for name, figure in figures.items():
        for place, each in zip(here, figure.tolist(), strict=True):
            columns[name][place] = each
    return replace(present, reports=present.reports + other.reports, **columns)


def _list_changes(record: EstimateRecord, present: Collection) -> tuple[list[str], list[str]]:
    """Values that only the record has, and that only the present list has."""
    labels = present.labels()
    listed, known = frozenset(labels), frozenset(record.values)
    gone = [each for each in record.values if each not in listed]
    return gone, [] if record.omitted else [each for each in labels if each not in known]


def _named(values: list[str]) -> str:
    more = f" and {len(values) - NAMES_SHOWN} more" if len(values) > NAMES_SHOWN else ""
    return ", ".join(values[:NAMES_SHOWN]) + more
