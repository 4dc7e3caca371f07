"""Test the demo's claims: exact counts, intervals that cover, few false discoveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

from deniable.deploy.demo.number_verdict import JudgedNumber
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE

MISS_RATE = 0.05  # of a 95 % interval
FALSE_ALARM_RATE = 1e-6


@dataclass(frozen=True)
class JudgedCollection:
    """A collection's estimate over all windows, beside the truth.

    Parameters
    ----------
    collection : that was estimated.
    estimate : over all windows together.
    truth : number of flights by value, without decoys.
    """

    collection: Collection
    estimate: Estimate
    truth: Mapping[str, int]

    def true_frequency(self, value: str) -> float:
        """Return the share of flights with this value."""
        return self.truth.get(value, 0) / sum(self.truth.values())

    def misses(self) -> list[str]:
        """Return values whose 95 % interval misses the truth."""
        estimate = self.estimate
        return [
            value
            for i, value in enumerate(self.collection.labels())
            if value in self.truth and not estimate.low[i] <= self.true_frequency(value) <= estimate.high[i]
        ]

    def discoveries(self) -> list[str]:
        """Return values that the estimate calls significant."""
        labels = self.collection.labels()
        return [value for value, found in zip(labels, self.estimate.significant, strict=True) if found]


#: What the demo judges: shares of values, or the mean and the quantiles of a number.
Judged = JudgedCollection | JudgedNumber


@dataclass(frozen=True)
class VerdictCounts:
    """Values, and figures of numbers, of all collections together.

    Parameters
    ----------
    real, missed : values that occur, and figures; how many of them lie outside their 95 % intervals.
    found, false : values called significant, and how many of them are decoys.
    """

    real: int
    missed: int
    found: int
    false: int


def tally(judged: Sequence[Judged]) -> VerdictCounts:
    """Count what `faults` tests."""
    found = [(one, value) for one in judged for value in one.discoveries()]
    return VerdictCounts(
        real=sum(len(one.truth) for one in judged),
        missed=sum(len(one.misses()) for one in judged),
        found=len(found),
        false=sum(value not in one.truth for one, value in found),
    )


def faults(judged: Sequence[Judged]) -> list[str]:
    """Return what is wrong with the estimates, one sentence each; empty if nothing is.

    Two one-sided binomial tests, each with a false-alarm rate of 1e-6 if intervals miss 5 % of the time and
    5 % of the discoveries are false. With 271 values and figures the first fails from 34 misses on: intervals
    that cover only 80 % of the time fail it with probability 99.95 %. A number's figures depend on each
    other, but hold more than 95 % of the time.
    """
    of = tally(judged)
    sentences = []
    if of.missed > most(of.real, MISS_RATE):
        sentences.append(f"{of.missed} of {of.real} intervals of 95 % miss the truth")
    if of.false > most(of.found, FALSE_DISCOVERY_RATE):
        sentences.append(f"{of.false} of {of.found} significant values are decoys")
    return sentences


def most(trials: int, rate: float) -> int:
    """Return the most hits that the tests allow: more have a probability below FALSE_ALARM_RATE."""
    return max(hits for hits in range(trials + 1) if at_least(hits, trials, rate) >= FALSE_ALARM_RATE)


def at_least(hits: int, trials: int, rate: float) -> float:
    """P(X >= hits) of a binomial X."""
    return sum(comb(trials, i) * rate**i * (1 - rate) ** (trials - i) for i in range(hits, trials + 1))
