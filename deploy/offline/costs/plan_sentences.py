"""What `plan` says of pairs and of a number, in sentences; a standard error above the whole says nothing."""

from deniable.deploy.offline.costs.plan_rows import GrowthPlan, NumberPlan, PlanRow
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.planning import Unlisted
from deniable.protocol.words import number_of

FEW_TEXTS = 5  # fewer are next to nothing, unless they are half of all


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
        f" detectable {found};\n{_needed(pair)} for {std_error:g}; a rare value of the first field"
        f" has {up_to_one(first)}"
    )


def growth_sentence(growth: GrowthPlan) -> str:
    """Say how many texts can be found without a list, and what share a text must have."""
    label = _label("prefix-tree", growth)
    reports = number_of(growth.reports, "report", ",")
    finds = "finds" if growth.reports == 1 else "find"
    many = "next to nothing" if growth.expected < min(FEW_TEXTS, growth.different / 2) else "some"
    least = growth.least_share
    even = (
        "with so few, no share is enough for an even chance"
        if least is None
        else f"one with a share of {least:.2g} is found as often as not"
    )
    return (
        f"{label}, {growth.levels} levels: {reports} {finds} {many} without a list: about"
        f" {growth.expected:.1f} of the most frequent\ntexts, if the shares of {growth.different:,} different"
        f" ones fall as 1 / rank; {even}"
    )


def unlisted_sentence(unlisted: Unlisted) -> str:
    """Say which reports of other strings the table assumes, and why local hashing may err less."""
    strings = number_of(unlisted.strings, "unlisted string", ",")
    equally = "" if unlisted.strings == 1 else ", equally frequent"
    return (
        f"assumed: a share of {unlisted.share:g} of the reports are of {strings}{equally}; the rest falls as"
        " 1 / rank.\nThis disturbs rappor; of local-hash, collisions disturb less if all shares are more even"
    )


def number_sentence(number: NumberPlan, std_error: float) -> str:
    """Say how exact the median of a number is; `std_error` is the wanted one, fraction of its range."""
    return (
        f"{_label('number', number)}: the median of evenly spread ones has"
        f" {_in_words(number.median_std_error)} of the\nrange, and a 95 % interval"
        f" {number.median_interval:.6f} wide; {_needed(number)} for {std_error:g}"
    )


def _label(name: str, plan: PlanRow | NumberPlan | GrowthPlan) -> str:
    """Return the name, with the epsilon of one report if it was chosen for shuffled ones."""
    return name if plan.shuffled is None else f"{name}, epsilon {rounded_up(plan.epsilon)}"


def _in_words(std_error: float) -> str:
    return f"a std error of {std_error:.6f}" if std_error <= 1 else "no std error up to 1"


def _needed(plan: PlanRow | NumberPlan) -> str:
    needed = plan.reports_needed
    return "no number of reports" if needed is None else number_of(needed, "report", ",")
