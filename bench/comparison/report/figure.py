"""Figures of the benchmark: comparisons with a reference, tables, and growth with size."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.aggregator.results import ResultRow
from bench.comparison.report.exponent import Exponent, exponent

GOAL = "goal"  # name of the reference for goals of our own figures


@dataclass(frozen=True)
class Figure:
    """One comparison.

    Parameters
    ----------
    name : what was measured; unique in a run.
    unit : of both values; for `…/s` more is better, for any other unit less is.
    ours, reference_value : > 0.
    reference : name of a library, or GOAL.
    goal : smallest ratio that meets the goal; None without a goal.
    is_judged : False if a library is missing that the goal refers to.
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
        """Ratio by which ours is better."""
        if self.unit.endswith("/s"):
            return self.ours / self.reference_value
        return self.reference_value / self.ours

    @property
    def met(self) -> bool | None:
        """True if the goal is met; None without a goal, or if it cannot be judged."""
        return None if self.goal is None or not self.is_judged else self.ratio >= self.goal

    def record(self) -> dict[str, object]:
        """Return the record in the results' JSON."""
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
    """Build a figure with an absolute goal: `wanted` is its reference, met at a ratio of 1."""
    return Figure(name, unit, ours, GOAL, wanted, goal=1.0)


@dataclass(frozen=True)
class Table:
    """A table of measurements: a title, and rows with the same columns."""

    title: str
    rows: Sequence[ResultRow]


@dataclass(frozen=True)
class Line:
    """Time and memory of one job as one of its sizes grows.

    Parameters
    ----------
    axis : name of the size.
    what : name of the job.
    sizes : ascending.
    seconds, mebibytes : processor time and peak memory at each size, > 0.
    """

    axis: str
    what: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    mebibytes: Sequence[float]

    @property
    def time_exponent(self) -> Exponent:
        """Exponent of the processor time."""
        return exponent(self.sizes, self.seconds)

    @property
    def memory_exponent(self) -> Exponent:
        """Exponent of the peak memory."""
        return exponent(self.sizes, self.mebibytes)


@dataclass(frozen=True)
class ResultsPart:
    """The results of one part of the benchmark.

    Parameters
    ----------
    title : of its section.
    about : method, a paragraph.
    figures : comparisons.
    tables : other measurements.
    notes : differences between libraries and limits of ours, a sentence or two each.
    lines : growth of jobs, for the picture.
    unjudged : goals that could not be judged, each with the reason.
    """

    title: str
    about: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    lines: Sequence[Line] = ()
    unjudged: Sequence[str] = ()
