"""Figures: what we measured beside what another did, and how many times better ours is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.aggregator_results import Row


@dataclass(frozen=True)
class Figure:
    """One comparison.

    Parameters
    ----------
    name : what was measured; equal in every run.
    unit : of both values; `…/s` is a speed, of which more is better, of any other unit less is.
    ours, reference_value : above 0.
    reference : who the other is: a library, or "goal" where a figure of our own is asked for.
    goal : the smallest ratio that meets it; None where none is stated.
    """

    name: str
    unit: str
    ours: float
    reference: str
    reference_value: float
    goal: float | None = None

    @property
    def ratio(self) -> float:
        """How many times better ours is."""
        if self.unit.endswith("/s"):
            return self.ours / self.reference_value
        return self.reference_value / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where none is stated."""
        return None if self.goal is None else self.ratio >= self.goal

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
    return Figure(name, unit, ours, "goal", wanted, goal=1.0)


@dataclass(frozen=True)
class Table:
    """Figures that are no comparisons: a title, and rows with the same columns in each."""

    title: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Part:
    """What a part of the benchmark measured.

    Parameters
    ----------
    title : of its section.
    about : what was done, a paragraph.
    figures : comparisons.
    tables : what else was measured.
    notes : where a peer does less or is wrong, and what limits us: a sentence or two each.
    """

    title: str
    about: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default=())
