"""Figures: what we measured beside what another did, how many times better ours is, and how it grows."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.aggregator.results import ResultRow
from bench.comparison.report.exponent import Exponent, exponent

GOAL = "goal"  # who the other is where a figure of our own is asked for


@dataclass(frozen=True)
class Figure:
    """One comparison.

    Parameters
    ----------
    name : what was measured, of its own in a run.
    unit : of both values; `…/s` is a speed, of which more is better, of any other unit less is.
    ours, reference_value : above 0.
    reference : who the other is: a library, or GOAL.
    goal : the smallest ratio that meets it; None where none is stated.
    is_judged : whether all are there that the goal is of; without them nobody knows whether it is met.
    """

    name: str
    unit: str
    ours: float
    reference: str
    reference_value: float
    goal: float | None = None
    is_judged: bool = True

    @property
    def ratio(self) -> float:
        """How many times better ours is."""
        if self.unit.endswith("/s"):
            return self.ours / self.reference_value
        return self.reference_value / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where none is stated, or it cannot be judged."""
        return None if self.goal is None or not self.is_judged else self.ratio >= self.goal

    def record(self) -> dict[str, object]:
        """As it stands in the results' JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "reference": self.reference,
            "reference_value": self.reference_value,
            "ratio": self.ratio,
            "goal": self.goal,
            "met": self.met,
        }


def absolute(name: str, unit: str, ours: float, wanted: float) -> Figure:
    """A figure of which `wanted` is asked: its own reference, met from a ratio of 1 on."""
    return Figure(name, unit, ours, GOAL, wanted, goal=1.0)


@dataclass(frozen=True)
class Table:
    """Figures that are no comparisons: a title, and rows with the same columns in each."""

    title: str
    rows: Sequence[ResultRow]


@dataclass(frozen=True)
class Line:
    """What one job takes as one size of it grows, everything else being the same.

    Parameters
    ----------
    axis : which size.
    what : the job.
    sizes : rising.
    seconds, mebibytes : at each size, above 0: processor time, and memory at its peak.
    """

    axis: str
    what: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    mebibytes: Sequence[float]

    @property
    def time_exponent(self) -> Exponent:
        """Of the processor time."""
        return exponent(self.sizes, self.seconds)

    @property
    def memory_exponent(self) -> Exponent:
        """Of the memory."""
        return exponent(self.sizes, self.mebibytes)


@dataclass(frozen=True)
class ResultsPart:
    """What a part of the benchmark measured.

    Parameters
    ----------
    title : of its section.
    about : what was done, a paragraph.
    figures : comparisons.
    tables : what else was measured.
    notes : where a peer does less or is wrong, and what limits us: a sentence or two each.
    lines : how jobs grow, for the picture.
    unjudged : goals that could not be judged, each with the reason.
    """

    title: str
    about: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    lines: Sequence[Line] = ()
    unjudged: Sequence[str] = ()
