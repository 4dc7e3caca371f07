"""What `account` prints: each figure, what it is, and what it holds for."""

from typing import Any

from deniable.config.describe import KNOWN_CHANGES, KNOWN_VALUES
from deniable.estimators.accounting.accountant import BOUNDS, Subject
from deniable.estimators.accounting.changing_buckets import ChangingBuckets
from deniable.estimators.accounting.changing_values import ChangingResponses
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.protocol.words import number_of

#: What a figure holds for.
UNCHANGED = "while the value stays the same"
ANY = "whatever the values do"


def account_table(
    asked: Subject,
    free: Subject,
    found: dict[str, Any],
    reports: int | None,
    budget: float | None,
    delta: float,
    most: int,
) -> str:
    """Write the JSON object's fields as lines of name, figure (rounded up) and meaning.

    Parameters
    ----------
    asked, free : what is accounted, as asked for and if values change.
    found : fields of the JSON object.
    reports, budget : as asked for.
    delta : in (0, 1).
    most : number of reports that stands for that many or more.
    """
    permanent = found["epsilon_inf"]
    lines = [
        ("epsilon_one", rounded_up(found["epsilon_one"]), "one report"),
        (
            "epsilon_inf",
            "unbounded" if permanent is None else rounded_up(permanent),
            _of_one_value(asked, permanent),
        ),
        ("rho", rounded_up(found["rho"]), "one report, zCDP"),
    ]
    if "lifetime" in found:
        meaning = f"any number of reports, {ANY}, {found['lifetime_condition']}"
        lines.append(("lifetime", rounded_up(found["lifetime"]), meaning))
    held = ANY if asked == free else UNCHANGED
    if reports is not None:
        subject = f"epsilon of {number_of(reports, 'report')} at delta {delta:g}"
        condition = found["any_values_condition"]
        is_bound = _is_bound(asked, reports)
        rows = {_shown(name, is_bound): rounded_up(found[name]) for name in BOUNDS}
        free_figure = rounded_up(found["any_values"])
    elif budget is not None:
        subject = f"reports within epsilon {budget:g} at delta {delta:g}"
        allowed, condition = found["reports_any_values"], found["reports_any_values_condition"]
        is_bound = _is_bound(asked, found["reports"]["exact"])
        rows = {_shown(name, is_bound): _allowed(found["reports"][name], most) for name in BOUNDS}
        free_figure = _allowed(allowed, most)
    else:
        rows, subject, condition, free_figure = {}, "", None, ""
    of_any = f"{subject}, {ANY}{f', {condition}' if condition else ''}"
    lines += [
        (name, figure, of_any if held == ANY else f"{subject}, {held}") for name, figure in rows.items()
    ]
    if rows and held != ANY:
        lines.append(("any", free_figure, of_any))
    return "\n".join(f"{name:<12} {figure:<14} {meaning}" for name, figure, meaning in lines)


def _of_one_value(asked: Subject, permanent: float | None) -> str:
    """Say what epsilon_inf bounds."""
    if permanent is None:
        return "any number of reports, each with noise of its own"
    of_one = "any number of reports of one value: one permanent response"
    return of_one + (", always memoized" if asked.always_memoizes else "")


def condition_of(asked: Subject, free: Subject, is_for_ever: bool) -> str | None:
    """Return the condition of a figure that holds whatever the values do; None if it needs none.

    Parameters
    ----------
    asked, free : as for `account_table`.
    is_for_ever : whether the figure is of any number of reports.
    """
    if isinstance(free, ChangingResponses):
        return KNOWN_VALUES
    if not isinstance(free, ChangingBuckets) or not is_for_ever:
        return None
    return KNOWN_CHANGES if asked == free else KNOWN_VALUES


def is_capped(free: Subject, reports: int, delta: float, figure: float) -> bool:
    """Whether a figure is that of the permanent responses, which needs a condition."""
    if not isinstance(free, ChangingBuckets):
        return False
    return figure < min(BOUNDS["exact"](free.loss(reports), delta), free.largest_of(reports))


def _is_bound(asked: Subject, reports: int | None) -> bool:
    """Whether the cost of so many reports, None for any number, is only bounded: if values may change."""
    return isinstance(asked, ChangingBuckets) and reports != 1


def _shown(name: str, is_bound: bool) -> str:
    return "bound" if is_bound and name == "exact" else name


def _allowed(reports: int | None, most: int) -> str:
    """Write a number of reports; the largest number tried stands for that many or more."""
    if reports is None:
        return "any number"
    return f"{reports} or more" if reports == most else str(reports)
