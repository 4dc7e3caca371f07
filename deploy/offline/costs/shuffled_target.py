"""What `plan --shuffled-epsilon` wants: the epsilon that shuffled reports shall have, for each mechanism."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from deploy.offline.costs.shuffled_cost import AGAINST, CONDITIONS
from estimators.accounting.shuffling.amplification import LARGEST_SHUFFLED, shuffled_epsilon
from estimators.accounting.shuffling.blanket import blanket_of
from estimators.accounting.shuffling.choice import LEAST_SHUFFLED_EPSILON, largest_for_shuffled
from estimators.mechanisms.krr import LARGEST_EPSILON
from estimators.mechanisms.mechanism import Mechanism

Build = Callable[[float], Mechanism]
Built = TypeVar("Built", bound=Mechanism)


@dataclass(frozen=True)
class ShuffledTarget:
    """A wanted epsilon of shuffled reports.

    Parameters
    ----------
    epsilon : nats, in [1e-3, 16].
    delta : in [1e-100, 1).
    reports : honest ones that are shuffled together, of all cohorts, in [1, 10^12].

    Raises
    ------
    ValueError if epsilon or reports are out of range; it names the option.
    """

    epsilon: float
    delta: float
    reports: int

    def __post_init__(self) -> None:
        if not LEAST_SHUFFLED_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise ValueError(
                f"--shuffled-epsilon must be in [{LEAST_SHUFFLED_EPSILON}, {LARGEST_EPSILON}],"
                f" got {self.epsilon}"
            )
        if not 1 <= self.reports <= LARGEST_SHUFFLED:
            raise ValueError(
                f"--shuffled (by default --reports) must be in [1, {LARGEST_SHUFFLED}], got {self.reports}"
            )

    def built(self, build: Callable[[float], Built]) -> Built:
        """Return the mechanism with the largest epsilon of one report that keeps within the wanted one."""
        reports = self._of_a_cohort(build(self.epsilon))
        return build(largest_for_shuffled(build, reports, self.epsilon, self.delta))

    def shuffled(self, mechanism: Mechanism) -> float:
        """Return the epsilon of its shuffled reports, rounded up, for one that `built` returned."""
        reports = self._of_a_cohort(mechanism)
        return min(shuffled_epsilon(blanket_of(mechanism), reports, self.delta).high, self.epsilon)

    def sentence(self, levels: int | None) -> str:
        """Say for whom and when the figures hold; `levels` of a prefix tree, None without one."""
        divided = "for rappor an eighth, since its cohorts are in clear"
        if levels is not None:
            divided = f"for rappor an eighth, for prefix-tree 1 / {levels}: cohorts and levels are in clear"
        return (
            f"epsilon: of one report, chosen so that it costs {self.epsilon:g} at delta {self.delta:g} among"
            f" {self.reports:,}\nshuffled ones ({divided}),"
            f"\n{AGAINST};\nit {CONDITIONS.replace('epsilon_one', 'its epsilon')}"
        )

    def _of_a_cohort(self, mechanism: Mechanism) -> int:
        return max(1, self.reports // mechanism.cohorts)
