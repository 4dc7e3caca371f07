"""Kinds of estimates by name: populations, what simulates one, and exact figures where there are some."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.estimators.conditional import buckets, fixed_clients, numbers_and_pairs, periods, remainders, texts
from bench.estimators.conditional.judging import Judged, Run, judge
from bench.estimators.conditional.periods import COMPARED_VALUES
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
REPORTS = (100, 1_000, 10_000, 1_000_000)
FEW_SHARES = (fixed_clients.SKEWED, fixed_clients.EVEN, fixed_clients.ONE)
FEW_TEXTS = (fixed_clients.SKEWED, fixed_clients.ONE, fixed_clients.UNLISTED)


@dataclass(frozen=True)
class Kind:
    """A kind of estimate.

    Parameters
    ----------
    mechanism : returns the mechanism of an epsilon.
    run : returns what simulates a window, from the mechanism, a population and the number of reports.
    populations : names, for `run`.
    channel : returns the channel of a single value, where coverage is a sum; or None.
    """

    mechanism: Callable[[float], Any]
    run: Callable[[Any, str, int], Run]
    populations: tuple[str, ...]
    channel: Callable[[Any], Inversion] | None = None

    def judged(self, epsilon: float, reports: int, runs: int, seed: int) -> dict[str, Judged]:
        """Judge one cell, by figure."""
        mechanism = self.mechanism(epsilon)
        simulated: Mapping[str, Run] = {
            population: self.run(mechanism, population, reports) for population in self.populations
        }
        found = judge(simulated, runs, seed)
        if self.channel is not None:
            channel, name = self.channel(mechanism), "all at once"
            found["share"] = buckets.exact_share(channel, reports)
            found[name] = buckets.exact_family(
                mechanism, channel, self.populations, reports, found[name].wide
            )
        return found


def compared_krr(epsilon: float) -> KRR:
    """k-RR of the values that are compared."""
    return KRR.from_epsilon(COMPARED_VALUES, epsilon)


KINDS: dict[str, Kind] = {
    "k-rr": Kind(buckets.k_rr_of, buckets.krr_run, fixed_clients.SHARES, Inversion.of_symmetric),
    "k-rr-longitudinal": Kind(
        buckets.longitudinal_of, buckets.krr_run, fixed_clients.SHARES, Inversion.of_symmetric
    ),
    "rappor-one-hot": Kind(
        partial(buckets.hot_of, hot=1), buckets.hot_run, fixed_clients.SHARES, Inversion.of_bit
    ),
    "rappor-k-hot": Kind(
        partial(buckets.hot_of, hot=buckets.HOT), buckets.hot_run, fixed_clients.SHARES, Inversion.of_bit
    ),
    **{
        f"rappor, {cohorts} cohort{'s' if cohorts > 1 else ''}": Kind(
            partial(texts.bloom_of, cohorts=cohorts),
            texts.bloom_run,
            (*fixed_clients.TEXTS, fixed_clients.FIVE_UNLISTED) if cohorts == 8 else fixed_clients.TEXTS,
        )
        for cohorts in (8, 4, 2, 1)
    },
    "local-hash": Kind(texts.local_hash_of, texts.hashed_run, fixed_clients.TEXTS),
    "local-hash-longitudinal": Kind(texts.longitudinal_hash_of, texts.hashed_run, fixed_clients.TEXTS),
    "prefix-tree": Kind(texts.tree_of, texts.tree_run, FEW_TEXTS),
    "number": Kind(numbers_and_pairs.number_of, numbers_and_pairs.number_run, fixed_clients.NUMBERS),
    "k-rr-pair": Kind(numbers_and_pairs.krr_pair_of, numbers_and_pairs.pair_run, fixed_clients.PAIRS),
    "one-hot-pair": Kind(numbers_and_pairs.one_hot_pair_of, numbers_and_pairs.pair_run, fixed_clients.PAIRS),
    "compare k-rr": Kind(compared_krr, periods.comparison_run, FEW_SHARES),
    "compare rappor-one-hot": Kind(partial(buckets.hot_of, hot=1), periods.comparison_run, FEW_SHARES),
    "compare local-hash": Kind(texts.local_hash_of, periods.comparison_run, FEW_TEXTS),
    "compare rappor, 8 cohorts": Kind(partial(texts.bloom_of, cohorts=8), periods.comparison_run, FEW_TEXTS),
    "roll-up k-rr-longitudinal": Kind(buckets.longitudinal_of, periods.krr_roll_up_run, fixed_clients.SHARES),
    "roll-up rappor-one-hot": Kind(periods.memoized_hot_of, periods.hot_roll_up_run, fixed_clients.SHARES),
    "remainder k-rr": Kind(remainders.long_krr_of, remainders.krr_run, remainders.POPULATIONS),
    "remainder rappor-one-hot": Kind(remainders.long_hot_of, remainders.hot_run, remainders.POPULATIONS),
}
