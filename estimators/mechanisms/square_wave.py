"""Square Wave: a bounded number, cut into steps, is reported as a step near the true one, or another one."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import exp_below, log_above
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON, WORDS
from deniable.estimators.mechanisms.traits import OneCohort, QuestionKind

LEAST_STEPS = 4
LARGEST_STEPS = 512
DEFAULT_STEPS = 256
LARGEST_NUMBER = 1e300
# Width of a cell as a fraction of the numbers, so that their rounding does not matter.
LEAST_SHARE = 1e-10
# Rows in which shares are estimated: half of b wide, but for few and many.
_LEAST_ROWS, _MOST_ROWS = 4, 32


@dataclass(frozen=True)
class SquareWave(OneCohort):
    """Square Wave on integers with an integer threshold, so that its probabilities and epsilon are exact.

    The range from `minimum` to `maximum` has d = `steps` cells of equal width. Reports have 2b more cells, b
    = `half_width` before and after, and cell x of the range is number x + b among them. The 2b + 1 cells from
    x to x + 2b are near x, the other d - 1 far. The producer reports a near cell iff a uniform 64-bit word is
    below `threshold`, and a second word chooses it by multiply-shift: (word * cells) >> 64. At b = 0 this is
    k-RR.

    Parameters
    ----------
    minimum, maximum : of the numbers, in [-1e300, 1e300], minimum < maximum. Numbers beyond are taken as the
        nearest end.
    steps : d, cells of the range, in [4, 512].
    half_width : b, in [0, d].
    threshold : P(near) 2^64, integer in (0, 2^64), high enough that each near cell is likelier than any far
        one.
    chosen : first cell of each row and the end of the last one, ascending in [0, d], for estimates only;
        empty for those that reports tell apart. It does not affect reports, so it is no part of `parameters`.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Li et al., "Estimating numerical distributions under local differential privacy" (SIGMOD 2020),
    section 5, in the discrete form of section 5.4.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "number"
    kind = QuestionKind.NUMBER
    wire_number = 6

    minimum: float
    maximum: float
    steps: int
    half_width: int
    threshold: int
    chosen: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.minimum, self.maximum, self.steps)
        if not 0 <= self.half_width <= self.steps:
            raise ValueError(f"half_width must be in [0, {self.steps}], got {self.half_width}")
        least = _least_threshold(self.near, self.far)
        if not least <= self.threshold < WORDS:
            raise ValueError(f"threshold must be in [{least}, {WORDS - 1}], got {self.threshold}")

    @classmethod
    def from_epsilon(cls, minimum: float, maximum: float, steps: int, epsilon: float) -> Self:
        """Build the Square Wave with the published b and the largest P(near) that epsilon permits.

        Parameters
        ----------
        minimum, maximum : of the numbers, in [-1e300, 1e300], minimum < maximum.
        steps : cells of the range, in [4, 512].
        epsilon : privacy loss of one report, nats, in (0, 16].

        Raises
        ------
        ValueError if a parameter is out of range, or epsilon is too small for 64-bit words.
        """
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be in (0, {LARGEST_EPSILON}], got {epsilon}")
        _check_range(minimum, maximum, steps)
        half_width = round(best_half_width(epsilon) * steps)
        near, far = 2 * half_width + 1, steps - 1
        # T ceil(2^64 / near) / ((2^64 - T) floor(2^64 / far)) <= e^epsilon, solved for the largest integer T.
        weight = exp_below(epsilon) * (WORDS // far)
        threshold = int(WORDS * weight / (-(-WORDS // near) + weight))
        least = _least_threshold(near, far)
        if threshold < least:
            smallest = cls(minimum, maximum, steps, half_width, least).epsilon
            raise ValueError(f"epsilon must be in [{smallest}, {LARGEST_EPSILON}], got {epsilon}")
        return cls(minimum, maximum, steps, half_width, min(threshold, WORDS - 1))

    @property
    def near(self) -> int:
        """Number of cells near a true one, 2b + 1."""
        return 2 * self.half_width + 1

    @property
    def far(self) -> int:
        """Number of cells that are not near, d - 1."""
        return self.steps - 1

    @property
    def p(self) -> float:
        """Mean of P(report y | truth x) over the cells y near x."""
        return self.threshold / (WORDS * self.near)

    @property
    def q(self) -> float:
        """Mean of P(report y | truth x) over the cells y far from x; (2b + 1) p + (d - 1) q = 1."""
        return (WORDS - self.threshold) / (WORDS * self.far)

    @property
    def contrast(self) -> float:
        """Difference p - q, rounded once, > 0."""
        return (self.threshold * self.far - (WORDS - self.threshold) * self.near) / (
            WORDS * self.near * self.far
        )

    @property
    def width(self) -> int:
        """Counters in one row of counts: one per reported cell, d + 2b."""
        return self.steps + 2 * self.half_width

    @property
    def counter_rates(self) -> tuple[float, float]:
        """P(report y | truth x) of a cell y near x, and of one far from it."""
        return self.p, self.q

    @property
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to the mean, as a fraction of the range."""
        return (self.width - 1) / (self.contrast * self.near * self.steps)

    @property
    def channel(self) -> FloatArray:
        """P(report y | truth x) in row y and column x, float64 (d + 2b, d): p in a band, else q."""
        rows, columns = np.arange(self.width)[:, None], np.arange(self.steps)
        is_near = (rows >= columns) & (rows < columns + self.near)
        return np.where(is_near, self.p, self.q)

    @property
    def scores(self) -> FloatArray:
        """What each reported cell says of its number, unbiased: float64 (d + 2b,), fractions of the range.

        Of a number in cell x, a report y has the mean E(y | x) = q S + c (x + b), where S is the sum of all
        places 0 ... d + 2b - 1 and c = (p - q)(2b + 1), because the near cells lie around x + b. So (y - q S)
        / c - b has the mean x, whatever the distribution is; its number is taken to be at the middle of x.
        """
        places = np.arange(self.width)
        cells = (places - self.q * float(places.sum())) / (self.contrast * self.near) - self.half_width
        return (cells + 0.5) / self.steps

    @property
    def most_noise(self) -> float:
        """Largest standard deviation of a report's score, over all true cells, fraction of the range, > 0."""
        squares = self.scores**2
        near = np.convolve(squares, np.ones(self.near), "valid")  # of each true cell
        centres = (np.arange(self.steps) + 0.5) / self.steps
        variances = self.q * float(squares.sum()) + self.contrast * near - centres**2
        return math.sqrt(float(variances.max()))

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up: ln(P(commonest near cell) / P(rarest far cell))."""
        common = Fraction(self.threshold * -(-WORDS // self.near))
        return log_above(common / ((WORDS - self.threshold) * (WORDS // self.far)))

    @property
    def edges(self) -> FloatArray:
        """Boundaries of the cells, float64 (d + 1,), ascending from `minimum` to `maximum`."""
        shares = np.arange(self.steps + 1) / self.steps
        return self.minimum * (1 - shares) + self.maximum * shares

    @cached_property
    def row_edges(self) -> NDArray[np.int64]:
        """First cell of each row, and the end of the last one: int64 (rows + 1,), ascending.

        They are those chosen, if any. Else they go from 0 to d, and a row joins neighbouring cells whose
        shares reports hardly tell apart. It is about half of b wide, so there are 4 to 32, and at most d.
        Their number is a divisor of d where one is near; else rows differ by a cell. It depends on the
        mechanism alone, so a row is the same in all windows.
        """
        if self.chosen:
            return np.array(self.chosen)
        wanted = round(2 * self.steps / max(self.half_width, 1))
        most = min(max(wanted, _LEAST_ROWS), _MOST_ROWS, self.steps)
        even = [rows for rows in range((most + 1) // 2, most + 1) if self.steps % rows == 0]
        rows = max(even, default=most)
        return np.arange(rows + 1) * self.steps // rows

    @property
    def row_bounds(self) -> tuple[str, ...]:
        """Numbers between which the rows are, one more than rows, ascending, in decimal with ten digits."""
        return tuple(f"{edge:.10g}" for edge in self.edges[self.row_edges])

    def at(self, share: float) -> float:
        """Return the number at a fraction of the range in [0, 1]: 0 is `minimum`, 1 is `maximum`."""
        return self.minimum * (1 - share) + self.maximum * share

    def cells(self, numbers: FloatArray) -> NDArray[np.int64]:
        """Return each number's cell: floor((number - minimum) / (maximum - minimum) d), cut to the range.

        Parameters
        ----------
        numbers : float64 array (n,), any but NaN.

        Returns
        -------
        int64 (n,), in [0, d).
        """
        inside = np.clip(numbers, self.minimum, self.maximum)
        inside -= self.minimum
        inside *= self.steps / (self.maximum - self.minimum)
        return np.minimum(inside, self.steps - 1, out=inside).astype(np.int64)

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon, see `Traits`; its rows are those that reports tell apart."""
        return self.from_epsilon(self.minimum, self.maximum, self.steps, epsilon)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "minimum": repr(float(self.minimum)),
            "maximum": repr(float(self.maximum)),
            "steps": self.steps,
            "half_width": self.half_width,
            "threshold": self.threshold,
        }


def best_half_width(epsilon: float) -> float:
    """Return the b that maximizes the mutual information of a uniform number and its report.

    Parameters
    ----------
    epsilon : privacy loss of one report, nats, > 0.

    Returns
    -------
    Fraction of the range, in (0, 1/2]: 1/2 in the limit of epsilon 0, falling.

    Source: Li et al. (SIGMOD 2020), section 5.3: (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)).
    """
    if epsilon < 1e-4:  # both differences cancel
        return 0.5 - epsilon / 3
    rest = math.expm1(epsilon) - epsilon
    return (epsilon * math.exp(epsilon) - math.expm1(epsilon)) / (2 * math.exp(epsilon) * rest)


def _least_threshold(near: int, far: int) -> int:
    """Smallest T with which the rarest near cell is likelier than the commonest far one.

    T floor(2^64 / near) > (2^64 - T) ceil(2^64 / far).
    """
    rarest_near, commonest_far = WORDS // near, -(-WORDS // far)
    return WORDS * commonest_far // (rarest_near + commonest_far) + 1


def _check_range(minimum: float, maximum: float, steps: int) -> None:
    if not -LARGEST_NUMBER <= minimum < maximum <= LARGEST_NUMBER:
        raise ValueError(
            f"minimum must be in [-{LARGEST_NUMBER:g}, maximum) and maximum in (minimum, {LARGEST_NUMBER:g}],"
            f" got {minimum} and {maximum}"
        )
    if not LEAST_STEPS <= steps <= LARGEST_STEPS:
        raise ValueError(f"steps must be in [{LEAST_STEPS}, {LARGEST_STEPS}], got {steps}")
    if not (maximum - minimum) / steps > LEAST_SHARE * max(abs(minimum), abs(maximum), 1e-290):
        raise ValueError(
            f"minimum and maximum must differ by {steps} steps above {LEAST_SHARE:g} of the larger one,"
            f" got {minimum} and {maximum}"
        )
