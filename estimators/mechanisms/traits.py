"""What every mechanism says of itself, so that nothing else asks which class it is of."""

import math
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar, Self


class QuestionKind(StrEnum):
    """The kind of question that a collection asks; it decides what a report is of, and what is estimated."""

    VALUES = "values"  #: which of k listed values: a share of each
    STRINGS = "strings"  #: any string, of which candidates are decoded: a share of each
    NUMBER = "number"  #: a number in a range: a density, a mean and quantiles
    PAIR = "pair"  #: a value of each of two fields: a share of each pair


class Traits(ABC):
    """Base class of all mechanisms.

    Parameters
    ----------
    kind : of the question that is answered.
    wire_number : of the form of its reports in a pack's header, in [1, 255].
    keeps_permanent : True if clients can keep a permanent response to each value.
    always_memoizes : True if they always do.
    repeats_noise : True if the reports of a returning client have anything random in common.
    """

    kind: ClassVar[QuestionKind]
    wire_number: ClassVar[int]
    keeps_permanent: ClassVar[bool] = False
    always_memoizes: ClassVar[bool] = False
    repeats_noise: ClassVar[bool] = False

    @property
    def domain_size(self) -> int:
        """Number of values or of pairs of values, `other` included; 0 for strings and numbers."""
        return 0

    @abstractmethod
    def at_epsilon(self, epsilon: float) -> Self:
        """Build the mechanism of this class with the least error at another epsilon of one report.

        Values, range, bits, hashes, cohorts and epsilon_inf stay the same.

        Parameters
        ----------
        epsilon : nats, within `mechanism.epsilon_range`.
        """

    @property
    def epsilon_of_all_buckets(self) -> float | None:
        """Loss of all reports of values in every bucket of longitudinal hashing, nats; None without it."""
        return None

    @property
    def max_values(self) -> int:
        """Largest number of values that one report is of: 1."""
        return 1

    def permanent_parameters(self) -> dict[str, int | str]:
        """Parameters on which what clients keep depends, if fewer than all; else empty."""
        return {}

    @property
    @abstractmethod
    def width(self) -> int:
        """Counters in one row of counts."""

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of any reports of a value that share a permanent response, nats; inf without one."""
        return math.inf

    @property
    @abstractmethod
    def counter_rates(self) -> tuple[float, float]:
        """Largest and least probability that a report adds to a counter, over all true values."""

    @property
    @abstractmethod
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to an estimated share; of a number, mean."""


class OneCohort(Traits):
    """Base class of mechanisms that count all clients together."""

    @property
    def cohorts(self) -> int:
        """Number of groups of clients that are counted separately, and so of rows of counters: 1."""
        return 1
