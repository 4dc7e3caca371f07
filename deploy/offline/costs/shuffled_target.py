"""What `plan --shuffled-epsilon` wants: the epsilon that shuffled reports shall have, for each mechanism."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from deniable.config.file import load
from deniable.config.sections import KafkaSection, RelaySection
from deniable.deploy.offline.costs.shuffled_cost import AGAINST, CONDITIONS
from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.accounting.shuffling.choice import LEAST_SHUFFLED_EPSILON, largest_for_shuffled
from deniable.estimators.accounting.shuffling.honest import honest_reports
from deniable.estimators.accounting.shuffling.least_pool import SMALLER_PROBABILITY, least_pool
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.protocol.words import number_of

Build = Callable[[float], Mechanism]
Built = TypeVar("Built", bound=Mechanism)


@dataclass(frozen=True)
class StatedPool:
    """Honest reports that are shuffled together, of all cohorts, as the user states them."""

    reports: int

    def honest(self, cohorts: int) -> int:
        """Return those of one cohort, >= 1."""
        return max(1, self.reports // cohorts)

    def sentence(self, levels: int | None) -> str:
        """Say among how many reports; `levels` of a prefix tree, None without one."""
        divided = "for rappor an eighth, since its cohorts are in clear"
        if levels is not None:
            divided = f"for rappor an eighth, for prefix-tree 1 / {levels}: cohorts and levels are in clear"
        return f"{self.reports:,}\nshuffled ones ({divided})"


@dataclass(frozen=True)
class RelayPool:
    """The least number of honest reports that relays shuffle together, as `check` and relays count it.

    Parameters
    ----------
    reports : of a window, forged ones included, each in one of the partitions and cohorts by chance.
    relay : with `shuffle_reports`, at least 1, and `forged_share`.
    partitions : of `uploads`, each shuffled by itself.
    """

    reports: int
    relay: RelaySection
    partitions: int

    def honest(self, cohorts: int) -> int:
        """Return those of one cohort, >= 1."""
        come = max(1, least_pool(self.reports, self.partitions * cohorts))
        return honest_reports(min(come, self.relay.shuffle_reports), self.relay.forged_share)

    def sentence(self, _: int | None) -> str:
        """Say among how many reports."""
        return (
            f"{self.honest(1):,}\nhonest ones, which relays shuffle together at least:"
            f" the smaller of shuffle_reports {self.relay.shuffle_reports:,} and\nwhat comes of a cohort"
            f" in each of {number_of(self.partitions, 'partition')} but for {SMALLER_PROBABILITY:g},"
            f" less forged_share {self.relay.forged_share:g};\nassumes that each report of a window is in"
            " one of them by chance, all equally likely"
        )


def wanted_epsilon(
    epsilon: float | None,
    shuffled_epsilon: float | None,
    delta: float,
    shuffled: int | None,
    reports: int,
    config: Path | None,
) -> "float | ShuffledTarget":
    """Return the epsilon that all mechanisms have, or the one that their shuffled reports shall have.

    Parameters
    ----------
    epsilon, shuffled_epsilon : one of them; the other None.
    delta, shuffled, reports : as of the options.
    config : the collection file with the relays' figures; None for the defaults of its sections.

    Raises
    ------
    click.UsageError unless one epsilon is given, and if relays shuffle no certain number.
    CollectionFileError if the file cannot be used.
    """
    if epsilon is not None and shuffled_epsilon is None:
        return epsilon
    if epsilon is not None or shuffled_epsilon is None:
        raise click.UsageError("give either --epsilon E or --shuffled-epsilon E")
    if shuffled is not None:
        return ShuffledTarget(shuffled_epsilon, delta, StatedPool(shuffled))
    relay, kafka = RelaySection(), KafkaSection()
    if config is not None:
        loaded = load(config)
        if loaded.relay is None:
            raise click.UsageError(
                f"{config} has no section relay, so nothing is shuffled in certain numbers: add it, or give"
                " --shuffled N"
            )
        relay, kafka = loaded.relay, loaded.kafka
    if relay.shuffle_reports == 0:
        raise click.UsageError(
            f"shuffle_reports of {config} is 0, so any number is shuffled together: raise it, or give"
            " --shuffled N"
        )
    return ShuffledTarget(shuffled_epsilon, delta, RelayPool(reports, relay, kafka.partitions))


@dataclass(frozen=True)
class ShuffledTarget:
    """A wanted epsilon of shuffled reports.

    Parameters
    ----------
    epsilon : nats, in [1e-3, 16].
    delta : in [1e-100, 1).
    pool : of honest reports that are shuffled together.

    Raises
    ------
    ValueError if epsilon is out of range; it names the option.
    """

    epsilon: float
    delta: float
    pool: StatedPool | RelayPool

    def __post_init__(self) -> None:
        if not LEAST_SHUFFLED_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise ValueError(
                f"--shuffled-epsilon must be in [{LEAST_SHUFFLED_EPSILON}, {LARGEST_EPSILON}],"
                f" got {self.epsilon}"
            )

    def built(self, build: Callable[[float], Built]) -> Built:
        """Return the mechanism with the largest epsilon of one report that keeps within the wanted one."""
        reports = self.pool.honest(build(self.epsilon).cohorts)
        return build(largest_for_shuffled(build, reports, self.epsilon, self.delta))

    def shuffled(self, mechanism: Mechanism) -> float:
        """Return the epsilon of its shuffled reports, rounded up, for one that `built` returned."""
        reports = self.pool.honest(mechanism.cohorts)
        return min(shuffled_epsilon(blanket_of(mechanism), reports, self.delta).high, self.epsilon)

    def sentence(self, levels: int | None) -> str:
        """Say for whom and when the figures hold; `levels` of a prefix tree, None without one."""
        return (
            f"epsilon: of one report, chosen so that it costs {self.epsilon:g} at delta {self.delta:g} among"
            f" {self.pool.sentence(levels)},"
            f"\n{AGAINST};\nit {CONDITIONS.replace('epsilon_one', 'its epsilon')}"
        )
