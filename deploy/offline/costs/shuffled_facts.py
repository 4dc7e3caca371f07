"""What `check` says of a collection whose reports relays shuffle."""

import msgspec

from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import Allowance
from deniable.estimators.accounting.shuffling.blanket import ShufflingRefusedError
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.estimators.mechanisms.directed_rounding import rounded_up


class ShuffledFacts(msgspec.Struct, frozen=True):
    """Epsilon of a report against whoever sees only what relays send, or why there is none.

    `shuffled` is the certified upper value and `shuffled_at_least` the lower, nats, among `honest_reports`;
    both None, with a sentence in `refused`, if no figure can be stated.
    """

    shuffled: float | None
    shuffled_at_least: float | None
    honest_reports: int
    delta: float
    refused: str | None = None


def shuffled_facts(allowance: Allowance, relay: RelaySection) -> ShuffledFacts:
    """Return what a report costs among the least number that relays shuffle where as many come.

    Parameters
    ----------
    allowance : of the collection.
    relay : the section of the file, which states the number and the share that may be forged.
    """
    delta = allowance.delta
    if relay.shuffle_reports == 0:
        return ShuffledFacts(None, None, 0, delta, "shuffle_reports is 0, so any number is shuffled together")
    try:
        shuffle = HonestShuffle.of(
            allowance.collection.mechanism,
            delta,
            relay.forged_share,
            allowance.memoized,
            allowance.reports_per_window,
        )
        one = allowance.collection.mechanism.epsilon
        low, high = (min(end, one) for end in shuffle.epsilon(relay.shuffle_reports))
    except (ShufflingRefusedError, ValueError) as error:
        return ShuffledFacts(None, None, 0, delta, str(error))
    return ShuffledFacts(high, low, shuffle.honest(relay.shuffle_reports), delta)


def shuffled_sentence(facts: ShuffledFacts, relay: RelaySection) -> str:
    """Return a line of `check`: the figure, its conditions, and against whom it holds."""
    if facts.shuffled is None:
        return f"shuffled by relays: no epsilon but that of a report: {facts.refused}"
    reports = relay.shuffle_reports
    come = "1 report of a cohort comes" if reports == 1 else f"{reports} reports of a cohort come"
    return (
        f"shuffled by relays: epsilon {rounded_up(facts.shuffled)} at delta {facts.delta:g}, where"
        f" {come}, of which {facts.honest_reports} {'is' if facts.honest_reports == 1 else 'are'} honest;"
        " only against readers of `reports` and of what follows: against broker, edge or relay's memory"
        " nothing is gained"
    )
