"""What `plan` says of a mechanism."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class NumberPlan:
    """The expected accuracy of the median of a number, asked by Square Wave.

    Parameters
    ----------
    epsilon : privacy loss of one report, exact.
    shuffled : that of one among shuffled ones, at the wanted delta; None unless wanted.
    median_std_error : standard error of the median of numbers spread evenly, fraction of their range.
    median_interval : expected width of its 95 % interval, fraction of their range.
    reports_needed : number of reports for the wanted standard error, of that; None if none is enough.
    """

    epsilon: float
    median_std_error: float
    median_interval: float
    reports_needed: int | None
    shuffled: float | None = None


@dataclass(frozen=True)
class PlanRow:
    """The expected accuracy of one mechanism; a column of the record, a line of the table.

    Parameters
    ----------
    mechanism : name.
    epsilon : privacy loss of one report, exact.
    shuffled : that of one among shuffled ones, at the wanted delta; None unless wanted.
    std_error : of a rare value's frequency, fraction of all reports.
    smallest_detectable : frequency found with probability 0.9; None if there is none.
    reports_needed : number of reports for the wanted standard error; None if no number suffices.
    """

    mechanism: str
    epsilon: float
    std_error: float
    smallest_detectable: float | None
    reports_needed: int | None
    shuffled: float | None = None


@dataclass(frozen=True)
class GrowthPlan:
    """What a prefix tree finds without a list of candidates.

    Parameters
    ----------
    levels : of the tree, between which clients are divided.
    epsilon : privacy loss of one report, exact.
    reports : of all levels together.
    different : number of different texts, whose frequencies fall as 1 / rank.
    expected : texts found, on average.
    least_share : share of all reports from which on a text is found in half of all searches; None if no
        share suffices.
    shuffled : epsilon of one report among shuffled ones, at the wanted delta; None unless wanted.
    """

    levels: int
    epsilon: float
    reports: int
    different: int
    expected: float
    least_share: float | None
    shuffled: float | None = None


def fields_of(plan: PlanRow | NumberPlan | GrowthPlan) -> dict[str, Any]:
    """Return its fields, without the epsilon of shuffled reports unless it is wanted."""
    return {name: value for name, value in asdict(plan).items() if (name, value) != ("shuffled", None)}
