"""Carriers whose list and epsilon changed half an hour ago, for the picture of the shares so far."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.former_estimates import FormerEstimates
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import T0
from tests.support.aggregator.scene import CARRIER, CARRIERS
from tests.support.estimators.simulation import generator, krr_counts, zipf_counts

BEFORE, SINCE = 300, 30  # windows
SHOWN = 50  # that the page knows
REPORTS = 20_000
NOW = replace(CARRIER, mechanism=KRR.from_epsilon(len(CARRIERS) + 1, math.log(3)), other=True)
THEN = replace(NOW, mechanism=KRR.from_epsilon(len(CARRIERS) + 1, 0.7), values=(*CARRIERS[:-1], "F9"))
#: Of each listed carrier and all others; B6 lost passengers at the change.
CLIENTS = {
    THEN: zipf_counts(len(CARRIERS) + 1, REPORTS, 0.8),
    NOW: zipf_counts(len(CARRIERS) + 1, REPORTS, 0.8),
}
CLIENTS[NOW][1] -= 600
CLIENTS[NOW][-1] += 600


class ChangedCarriers:
    """The counts of all windows, and what a worker reads of them."""

    def __init__(self) -> None:
        rng = generator(7)
        first = T0 - 60 * (BEFORE + SINCE)
        self.windows = {
            (first + 60 * step, each): krr_counts(rng, CLIENTS[each], each.mechanism)
            for step, each in enumerate([THEN] * BEFORE + [NOW] * SINCE)
        }

    def records(self, collection: Collection) -> Iterator[EstimateRecord]:
        """The final estimates under one definition, by time."""
        for (start, each), counts in self.windows.items():
            if each is collection:
                window = WindowCounts(counts[None], np.array([counts.sum()]), packs=1, rejected=0)
                result = window_estimate.estimate(collection, window)
                yield window_estimate.record_of(collection, start, window, result, final=True)

    def shown(self) -> list[EstimateRecord]:
        """The newest estimates under both definitions, which have their own fingerprints."""
        return [*self.records(THEN), *self.records(NOW)][-SHOWN:]

    def joined(self) -> Joined:
        """The sum under the present definition."""
        ours = {start: counts for (start, each), counts in self.windows.items() if each is NOW}
        total = np.sum([*ours.values()], axis=0)
        counts = WindowCounts(total[None], np.array([total.sum()]), packs=1, rejected=0)
        reports = {start: int(each.sum()) for start, each in ours.items()}
        return Joined(counts, reports, [], {THEN.fingerprint: BEFORE}, 0)

    def fill(self, reading: FormerEstimates) -> None:
        """Read all estimates under the former definition."""
        for each in self.records(THEN):
            reading.take(each.key, encode_estimate(each))
