"""What a metric is: its name, what it means, what to do about it. How it is made for Prometheus.

Each room declares its metrics in one catalogue. What sets a metric takes it from there, so that no name and
no meaning stands twice.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

PREFIX = "deniable"

Unit = Literal["", "bytes", "nats", "ratio", "records", "seconds", "timestamp_seconds"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric: a `CounterMetric`, a `GaugeMetric` or a `HistogramMetric`.

    Parameters
    ----------
    name : without prefix, unit and `_total`.
    meaning : sentences; of labels with a fixed list of values, these too.
    remedy : what to do when it is not as it should be; empty where there is nothing to do.
    labels : their names. None holds a client, a cohort, or what came from input.
    unit : what the exposed name ends in; empty where `name` says what is counted.
    """

    name: str
    meaning: str
    remedy: str = ""
    labels: tuple[str, ...] = ()
    unit: Unit = ""

    kind: ClassVar[str]

    @property
    def exposed(self) -> str:
        """Name that Prometheus sees: prefix, name, unit."""
        return "_".join(part for part in (PREFIX, self.name, self.unit) if part)

    @property
    def help(self) -> str:
        """Meaning and remedy, as Prometheus tells them."""
        return f"{self.meaning} Remedy: {self.remedy}" if self.remedy else self.meaning


@dataclass(frozen=True, kw_only=True)
class CounterMetric(Metric):
    """A total since the start of the process."""

    kind = "counter"

    @property
    def exposed(self) -> str:
        """Name that Prometheus sees: prefix, name, unit, `_total`."""
        return f"{super().exposed}_total"

    def register(self, registry: CollectorRegistry) -> Counter:
        """Make it in this registry."""
        return Counter(self.exposed, self.help, self.labels, registry=registry)

    def family(self) -> CounterMetricFamily:
        """Make it for one scrape, still empty."""
        return CounterMetricFamily(self.exposed, self.help, labels=self.labels)


@dataclass(frozen=True, kw_only=True)
class GaugeMetric(Metric):
    """A figure that goes up and down."""

    kind = "gauge"

    def register(self, registry: CollectorRegistry) -> Gauge:
        """Make it in this registry."""
        return Gauge(self.exposed, self.help, self.labels, registry=registry)

    def family(self) -> GaugeMetricFamily:
        """Make it for one scrape, still empty."""
        return GaugeMetricFamily(self.exposed, self.help, labels=self.labels)


@dataclass(frozen=True, kw_only=True)
class HistogramMetric(Metric):
    """How often a figure was how large.

    Parameters
    ----------
    buckets : upper ends, rising, in the unit of the metric.
    """

    buckets: tuple[float, ...]

    kind = "histogram"

    def register(self, registry: CollectorRegistry) -> Histogram:
        """Make it in this registry."""
        return Histogram(self.exposed, self.help, self.labels, registry=registry, buckets=self.buckets)


def declared_in(catalogue: ModuleType) -> tuple[Metric, ...]:
    """All metrics of a catalogue, in the order in which they stand there."""
    return tuple(each for each in vars(catalogue).values() if isinstance(each, Metric))
