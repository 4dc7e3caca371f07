"""What `account --shuffled` says: epsilon of reports that are shuffled together before anybody sees them."""

from dataclasses import dataclass
from typing import Any

import click

from deniable.estimators.accounting.shuffling.amplification import LARGEST_SHUFFLED, shuffled_epsilon
from deniable.estimators.accounting.shuffling.attained import attained_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.accounting.shuffling.windows import MOST_WINDOWS, windows_epsilon
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.mechanism import Mechanism, tree_of

#: Of a number that is read; Python itself refuses to read thousands.
MOST_DIGITS = 20

#: Against whom the figure holds, and on which conditions; it stands wherever a figure does.
AGAINST = "against whoever sees only what comes out of the shuffle"
CONDITIONS = (
    "holds for one fixed randomizer with fresh noise, not one chosen by earlier reports, and for one report\n"
    "of a client in each shuffle; count only honest reports of one cohort, a number decided before looking.\n"
    "Against broker, edge or relay's memory nothing is gained: there a report costs epsilon_one"
)


class ShuffledNumber(click.ParamType):
    """The number of reports that are shuffled together."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return an integer in [1, 10^12]; a usage error for anything else."""
        text = str(value)
        digits = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
        if not digits or not 1 <= int(text) <= LARGEST_SHUFFLED:
            self.fail(
                f"must be a whole number in [1, {LARGEST_SHUFFLED}], got {text[:24]!r}",
                param,
                ctx,
            )
        return int(text)


@dataclass(frozen=True)
class ShuffledCost:
    """Epsilons of shuffled reports, nats.

    Parameters
    ----------
    shuffled : certified upper value of the bound of one report.
    shuffled_at_least : certified lower value of the same bound: rounding has raised it by no more.
    shuffled_attained : what two real data sets attain, so no valid bound is below it; None but for k-RR.
    shuffled_windows : of one report in each of several windows; None for one.
    """

    shuffled: float
    shuffled_at_least: float
    shuffled_attained: float | None
    shuffled_windows: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are asked for."""
        found: dict[str, Any] = {
            "shuffled": self.shuffled,
            "shuffled_at_least": self.shuffled_at_least,
            "shuffled_attained": self.shuffled_attained,
        }
        return found if self.shuffled_windows is None else found | {"shuffled_windows": self.shuffled_windows}


def shuffled_cost(
    mechanism: Mechanism, shuffled: int, delta: float, windows: int | None, memoized: bool
) -> ShuffledCost:
    """Compute what a report costs among others.

    Parameters
    ----------
    mechanism : any.
    shuffled : number of honest reports that are shuffled together, in [1, 10^12].
    delta : in [1e-100, 1); with several windows, of all together.
    windows : in each of which the client sends one report, in [1, 10,000]; None for 1.
    memoized : whether reports repeat a permanent response, or each other.

    Raises
    ------
    ShufflingRefusedError if no such epsilon exists; ValueError if a parameter is out of range.
    """
    if windows is not None and not 1 <= windows <= MOST_WINDOWS:
        raise ValueError(f"--reports with --shuffled must be in [1, {MOST_WINDOWS}], got {windows}")
    blanket = blanket_of(mechanism, memoized)
    # Of the channel before rounding, the loss of one report is a little above its certified epsilon.
    low, high = (min(end, mechanism.epsilon) for end in shuffled_epsilon(blanket, shuffled, delta))
    attained = attained_epsilon(mechanism, shuffled, delta) if isinstance(mechanism, KRR) else None
    several = None if windows is None else windows_epsilon(blanket, shuffled, delta, windows)
    return ShuffledCost(high, low, attained, several)


def shuffled_lines(
    cost: dict[str, Any], mechanism: Mechanism, shuffled: int, windows: int | None, delta: float
) -> list[str]:
    """Write the JSON object's fields, rounded up but for the lower value, with their meaning."""
    of_level = " of its level" if tree_of(mechanism) else ""
    among = "shuffled alone" if shuffled == 1 else f"among {shuffled:,} shuffled ones{of_level}"
    subject = f"one report {among}, at delta {delta:g}"
    lines = [f"{'shuffled':<12} {rounded_up(cost['shuffled']):<14} {subject}"]
    if windows is not None:
        reports = f"{windows} such reports, one in each of {windows} windows"
        together = f"{'1 such report' if windows == 1 else reports}, at delta {delta:g}"
        lines.append(f"{'shuffled':<12} {rounded_up(cost['shuffled_windows']):<14} {together}")
    return [*lines, f"shuffled: {AGAINST};", CONDITIONS]
