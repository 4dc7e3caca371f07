"""Metrics: name, meaning, remedy, and how to export them to Prometheus.

Each package declares its metrics in one module, and code that sets a metric imports it from there, so no name
or meaning is repeated.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:  # imported when metrics are exported: a producer that nobody scrapes does without
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
    remedy : what to do about a bad value; empty if there is nothing to do.
    labels : their names. None has a client, a cohort or text from input.
    unit : suffix of the exposed name; empty if `name` says what is counted.
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
        """Meaning and remedy, for Prometheus."""
        return f"{self.meaning} Remedy: {self.remedy}" if self.remedy else self.meaning


@dataclass(frozen=True, kw_only=True)
class CounterMetric(Metric):
    """A total since the start of the process."""

    kind = "counter"

    @property
    def exposed(self) -> str:
        """Name that Prometheus sees: prefix, name, unit, `_total`."""
        return f"{super().exposed}_total"

    def register(self, registry: "CollectorRegistry") -> "Counter":
        """Create the metric in this registry."""
        from prometheus_client import Counter

        return Counter(self.exposed, self.help, self.labels, registry=registry)

    def family(self) -> "CounterMetricFamily":
        """Create an empty family for one scrape."""
        from prometheus_client.core import CounterMetricFamily

        return CounterMetricFamily(self.exposed, self.help, labels=self.labels)


@dataclass(frozen=True, kw_only=True)
class GaugeMetric(Metric):
    """A figure that goes up and down."""

    kind = "gauge"

    def register(self, registry: "CollectorRegistry") -> "Gauge":
        """Create the metric in this registry."""
        from prometheus_client import Gauge

        return Gauge(self.exposed, self.help, self.labels, registry=registry)

    def family(self) -> "GaugeMetricFamily":
        """Create an empty family for one scrape."""
        from prometheus_client.core import GaugeMetricFamily

        return GaugeMetricFamily(self.exposed, self.help, labels=self.labels)


@dataclass(frozen=True, kw_only=True)
class HistogramMetric(Metric):
    """A distribution of figures.

    Parameters
    ----------
    buckets : upper ends, ascending, in the unit of the metric.
    """

    buckets: tuple[float, ...]

    kind = "histogram"

    def register(self, registry: "CollectorRegistry") -> "Histogram":
        """Create the metric in this registry."""
        from prometheus_client import Histogram

        return Histogram(self.exposed, self.help, self.labels, registry=registry, buckets=self.buckets)


def single(metric: CounterMetric | GaugeMetric, value: float) -> "CounterMetricFamily | GaugeMetricFamily":
    """Return the family of a metric without labels, with its value, for one scrape."""
    family = metric.family()
    family.add_metric([], value)
    return family


def declared_in(definitions: ModuleType) -> tuple[Metric, ...]:
    """Return all metrics of a module of definitions, in order."""
    return tuple(each for each in vars(definitions).values() if isinstance(each, Metric))
