"""What Prometheus sees of a relay."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.relay.acceptance import REASONS
from deniable.relay.service import definitions
from deniable.relay.service.partition import PartitionRelay, SealedBatch
from deniable.relay.windows import ClosedWindow

SHOWN_SECONDS = 300  # for which a closed window's figure counts at least; Prometheus looks back as far
UNKNOWN = "unknown"  # a collection that is no longer in this relay's file


class RelayMetrics:
    """All metrics of one relay, in `registry`.

    Parameters
    ----------
    names : of the collections, by fingerprint; each is exported from the start, at 0.
    shuffles : what epsilons of shuffled reports depend on beside their number, by fingerprint.
    """

    def __init__(self, names: Mapping[int, str], shuffles: Mapping[int, HonestShuffle] | None = None) -> None:
        self.registry = registry = CollectorRegistry()
        self._names = names
        self._uploads = definitions.UPLOADS.register(registry)
        self._reports = definitions.REPORTS.register(registry)
        self._rejected = definitions.REJECTED.register(registry)
        self._groups = definitions.REJECTED_GROUPS.register(registry)
        self._batches = definitions.BATCHES.register(registry)
        self._packs = definitions.PACKS.register(registry)
        self._packed = definitions.PACKED.register(registry)
        self._held = definitions.HELD.register(registry)
        self._shuffled = definitions.SHUFFLED.register(registry)
        self._least = definitions.SHUFFLED_LEAST.register(registry)
        self._lag = definitions.LAG.register(registry)
        self._watermark = definitions.WATERMARK.register(registry)
        self._rewind = definitions.REWIND.register(registry)
        self._ids = definitions.IDS.register(registry)
        self._windows = definitions.WINDOWS.register(registry)
        self.openings = definitions.OPENINGS.register(registry)
        self.losses = definitions.LOSSES.register(registry)
        self.away = definitions.AWAY.register(registry)
        self._epsilons = ShuffledEpsilons(names, shuffles or {}, registry)
        self._smallest: dict[str, int] = {}
        for name in names.values():
            for result in ("accepted", "rejected"):
                self._reports.labels(name, result)
            self._shuffled.labels(name)
        for reason in REASONS:
            self._rejected.labels(reason)
            self._groups.labels(reason)

    def sent(self, sealed: SealedBatch) -> None:
        """Count a batch that Kafka has."""
        outcomes = sealed.batch.outcomes
        self._batches.inc()
        self._packs.inc(sealed.packs)
        self._packed.inc(sealed.reports)
        self._uploads.inc(outcomes.uploads)
        for (fingerprint, _), reports in outcomes.reports.items():
            self._reports.labels(self._name(fingerprint), "accepted").inc(reports)
        for (_, _, reason), groups in outcomes.rejected.items():
            self._groups.labels(reason).inc(groups)
        for (fingerprint, _, reason), reports in outcomes.rejected_reports.items():
            self._rejected.labels(reason).inc(reports)
            if fingerprint:
                self._reports.labels(self._name(fingerprint), "rejected").inc(reports)
        for release in sealed.batch.releases:
            name = self._name(release.intake.fingerprint)
            self._shuffled.labels(name).observe(release.shuffled)
            self._smallest[name] = min(release.shuffled, self._smallest.get(name, release.shuffled))
            self._least.labels(name).set(self._smallest[name])
        for window in sealed.batch.closed:
            self._epsilons.closed(window)

    def show(self, relays: Iterable[PartitionRelay], ends: Mapping[int, int]) -> None:
        """Set the figures of the present partitions.

        Parameters
        ----------
        relays : of all partitions of this relay.
        ends : of their logs, by partition, as far as known.
        """
        held, windows, ids = Counter[str](), Counter[str](), 0
        for gauge in (self._lag, self._watermark, self._rewind):
            gauge.clear()
        for relay in relays:
            fold = relay.fold
            partition = str(fold.partition)
            self._rewind.labels(partition).set(fold.position - relay.rewind)
            if fold.watermark_ms >= 0:
                self._watermark.labels(partition).set(fold.watermark_ms / 1000)
            if fold.partition in ends:
                self._lag.labels(partition).set(max(0, ends[fold.partition] - fold.position))
            for (fingerprint, _), window in list(fold.windows.open.items()):
                name = self._name(fingerprint)
                held[name] += window.held_reports
                windows[name] += 1
                ids += len(window.ids)
        self._ids.set(ids)
        for name in {*self._names.values(), *held, *windows}:
            self._held.labels(name).set(held[name])
            self._windows.labels(name).set(windows[name])

    def _name(self, fingerprint: int) -> str:
        return self._names.get(fingerprint, UNKNOWN)


class ShuffledEpsilons(Collector):
    """What a report cost among those shuffled with it, in the closed windows of each collection.

    Figures are computed at a scrape, so that no batch waits for them, and kept.

    Rule: the figure is that of the smallest number among all windows that closed within SHOWN_SECONDS, and
    of the newest window if none did. So a scrape at least that often sees every window's figure or a larger
    one, however many close at once, such as while a relay catches up, and whatever partition closes last.

    Parameters
    ----------
    names : of the collections, by fingerprint.
    shuffles : what was decided beforehand, by fingerprint; without those that have no such epsilon.
    registry : to register in.
    clock : monotonic seconds.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        shuffles: Mapping[int, HonestShuffle],
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names, self._shuffles, self._clock = names, shuffles, clock
        self._newest: dict[int, ClosedWindow] = {}
        self._recent: dict[int, tuple[tuple[float, int], ...]] = {}
        registry.register(self)

    def closed(self, window: ClosedWindow) -> None:
        """Take a closed window of a partition."""
        key, least, now = window.fingerprint, window.least_shuffled, self._clock()
        # Of earlier closings only smaller numbers count from now on: numbers rise along the tuple.
        earlier = [each for each in self._recent.get(key, ()) if _is_recent(each, now) and each[1] < least]
        self._recent[key] = (*earlier, (now, least))
        held = self._newest.get(key)
        if held is None or (window.start, -least) > (held.start, -held.least_shuffled):
            self._newest[key] = window

    def describe(self) -> list[Metric]:
        """Return nothing, because the figures are not known in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures. Any thread may call this."""
        epsilon, reports = definitions.EPSILON_SHUFFLED.family(), definitions.SHUFFLED_HONEST.family()
        now = self._clock()
        for fingerprint, newest in self._newest.copy().items():
            shuffle = self._shuffles.get(fingerprint)
            if shuffle is not None and fingerprint in self._names:
                recent = [each[1] for each in self._recent[fingerprint] if _is_recent(each, now)]
                least = min(recent, default=newest.least_shuffled)
                labels = [self._names[fingerprint]]
                epsilon.add_metric(labels, shuffle.epsilon(least).high)
                reports.add_metric(labels, shuffle.honest(least))
        yield from (epsilon, reports)


def _is_recent(closing: tuple[float, int], now: float) -> bool:
    return now - closing[0] <= SHOWN_SECONDS
