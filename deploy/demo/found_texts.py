"""Test that the destinations that nobody listed are found, and few that nobody has."""

from collections import Counter
from collections.abc import Sequence

from deniable.aggregator.estimation.growing import grown
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.demo.verdict import most
from deniable.estimators.collection import Collection
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE


class JudgedTexts:
    """What growing finds in all windows together, beside the truth.

    Parameters
    ----------
    collection : a prefix tree.
    counts : of all windows.
    truth : the text of each report, none longer than the last level.
    """

    def __init__(self, collection: Collection, counts: WindowCounts, truth: Sequence[str]) -> None:
        self.name = collection.name
        self.truth = Counter(truth)
        self.found: FoundTexts = grown(
            collection, counts.counts, [counts.reports], collection.alphabet, FALSE_DISCOVERY_RATE
        )

    def false(self) -> int:
        """Return the number of texts found that nobody has."""
        return sum(each.decode() not in self.truth for each in self.found.texts)

    def sentence(self) -> str:
        """Say how many were found."""
        found = len(self.found.texts)
        return (
            f"{self.name}: {found - self.false()} of {len(self.truth)} destinations found without a list, "
            f"and {self.false()} that nobody flew to"
        )

    def faults(self) -> list[str]:
        """Return what is wrong: with a false-alarm rate of 1e-6, more false texts than 5 %."""
        found = len(self.found.texts)
        if self.false() <= most(found, FALSE_DISCOVERY_RATE):
            return []
        return [f"{self.false()} of {found} texts found by {self.name} are of nobody"]
