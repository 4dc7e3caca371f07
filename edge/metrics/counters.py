"""Totals of an edge as plain numbers, since a request may cost only microseconds, and their export."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from deniable.edge.metrics import definitions
from deniable.protocol.metric import single

_BUCKETS = definitions.ANSWER_SECONDS.buckets


class EdgeCounters(Collector):
    """Totals since the start of the process; attributes are changed where things happen.

    Parameters
    ----------
    reasons : for which groups are rejected; each is exported from the start, at 0.
    """

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self._reasons = reasons
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rejected: Counter[str] = Counter()
        self.uploads = 0
        self.upload_bytes = 0
        self.groups = 0
        self.reports = 0
        self.frames = 0
        self.frame_failures = 0
        self.queue_bytes = 0
        self.connections = 0
        self.connections_refused = 0
        self.is_kafka_away = True
        self._answers = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0

    def taken(self, groups: int, reports: int, size: int) -> None:
        """Count an upload that Kafka has: its groups, reports and bytes."""
        self.uploads += 1
        self.groups += groups
        self.reports += reports
        self.upload_bytes += size

    def answered(self, seconds: float) -> None:
        """Count the time of one answer."""
        self._answers[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds += seconds

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read counters."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        requests = definitions.REQUESTS.family()
        for (path, status), number in sorted(self.requests.items()):
            requests.add_metric([path, str(status)], number)
        yield requests
        rejected = definitions.GROUPS_REJECTED.family()
        for reason in self._reasons:
            rejected.add_metric([reason], self.rejected[reason])
        yield rejected
        yield single(definitions.UPLOADS, self.uploads)
        yield single(definitions.UPLOAD_BYTES, self.upload_bytes)
        yield single(definitions.GROUPS, self.groups)
        yield single(definitions.REPORTS, self.reports)
        yield single(definitions.FRAMES, self.frames)
        yield single(definitions.FRAME_FAILURES, self.frame_failures)
        yield single(definitions.QUEUE_BYTES, self.queue_bytes)
        yield single(definitions.CONNECTIONS, self.connections)
        yield single(definitions.CONNECTIONS_REFUSED, self.connections_refused)
        yield single(definitions.KAFKA_AWAY, self.is_kafka_away)
        yield self._answer_seconds()

    def _answer_seconds(self) -> Metric:
        metric = definitions.ANSWER_SECONDS
        below, buckets = 0, []
        for end, number in zip([*map(str, _BUCKETS), "+Inf"], self._answers, strict=True):
            below += number
            buckets.append((end, float(below)))
        family = HistogramMetricFamily(metric.exposed, metric.help)
        family.add_metric([], buckets, self._seconds)
        return family
