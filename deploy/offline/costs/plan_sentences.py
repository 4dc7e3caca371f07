"""What `plan` says of pairs and of a number, in sentences; a standard error above the whole says nothing."""

from deploy.config.describe import rounded_up
from deploy.offline.costs.plan_rows import NumberPlan, PlanRow


def up_to_one(std_error: float) -> str:
    """Write a standard error that is a fraction of a whole; "none" above 1."""
    return f"{std_error:.6f}" if std_error <= 1 else "none"


def pair_sentence(pair: PlanRow, std_error: float, first: float) -> str:
    """Say how exact a pair's table is.

    Parameters
    ----------
    pair : of one of the mechanisms for pairs.
    std_error : the wanted one, fraction of all reports.
    first : standard error of a rare value of the first field, fraction of all reports.
    """
    found = "none" if pair.smallest_detectable is None else f"{pair.smallest_detectable:.6f}"
    return (
        f"{_label(pair.mechanism, pair)}: a rare pair of values has {_in_words(pair.std_error)},"
        f" detectable {found};\n{_needed(pair)} reports for {std_error:g}; a rare value of the first field"
        f" has {up_to_one(first)}"
    )


def number_sentence(number: NumberPlan, std_error: float) -> str:
    """Say how exact the median of a number is; `std_error` is the wanted one, fraction of its range."""
    return (
        f"{_label('number', number)}: the median of evenly spread ones has"
        f" {_in_words(number.median_std_error)} of the\nrange, and a 95 % interval"
        f" {number.median_interval:.6f} wide; {_needed(number)} reports for {std_error:g}"
    )


def _label(name: str, plan: PlanRow | NumberPlan) -> str:
    """Return the name, with the epsilon of one report if it was chosen for shuffled ones."""
    return name if plan.shuffled is None else f"{name}, epsilon {rounded_up(plan.epsilon)}"


def _in_words(std_error: float) -> str:
    return f"a std error of {std_error:.6f}" if std_error <= 1 else "no std error up to 1"


def _needed(plan: PlanRow | NumberPlan) -> str:
    return "no number of" if plan.reports_needed is None else f"{plan.reports_needed:,}"
