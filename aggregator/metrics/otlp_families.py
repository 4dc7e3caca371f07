"""The metrics of a registry as data of the OpenTelemetry protocol (OTLP).

Rule 1: names, labels and meanings are those of `/metrics`, so `docs/metrics.md`, rules and dashboards hold
for both. A unit is added where the name has one.
Rule 2: it reads the registry as a scrape does. So what the registry leaves out, such as clients and values
from input, is in neither.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.samples import Sample

from deniable.aggregator.metrics import definitions
from deniable.protocol.metric import Unit, declared_in

SCOPE = "deniable"
#: In the code of UCUM, as the protocol asks. What is in braces has no dimension.
UNITS: Mapping[Unit, str] = {
    "": "",
    "bytes": "By",
    "nats": "{nat}",
    "ratio": "1",
    "records": "{record}",
    "seconds": "s",
    "timestamp_seconds": "s",
}
_UNIT_OF = {each.exposed: UNITS[each.unit] for each in declared_in(definitions)}

LabelValues = tuple[tuple[str, str], ...]


def metrics_data(
    registry: CollectorRegistry, resource: Resource, started_ns: int, now_ns: int
) -> MetricsData:
    """Read a registry; totals and distributions are cumulative.

    Parameters
    ----------
    registry : of a worker.
    resource : who reports.
    started_ns : when totals began, unix nanoseconds.
    now_ns : time of the figures, unix nanoseconds.
    """
    found = [each for family in registry.collect() if (each := _metric(family, started_ns, now_ns))]
    scope = ScopeMetrics(InstrumentationScope(SCOPE), found, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, started_ns: int, now_ns: int) -> Metric | None:
    """Return one metric; None if it has no series yet, or is of a kind that no worker has."""
    if not family.samples:
        return None
    name, data = family.name, _data(family, started_ns, now_ns)
    if data is None:
        return None
    if isinstance(data, Sum):
        name = f"{name}_total"  # the registry's families leave it out
    return Metric(name, family.documentation, _UNIT_OF.get(name, ""), data)


def _data(family: Family, started_ns: int, now_ns: int) -> Sum | Gauge | Histogram | None:
    cumulative = AggregationTemporality.CUMULATIVE
    match family.type:
        case "counter":
            totals = [each for each in family.samples if each.name.endswith("_total")]
            return Sum([_number(each, started_ns, now_ns) for each in totals], cumulative, True)
        case "gauge":
            return Gauge([_number(each, None, now_ns) for each in family.samples])
        case "histogram":
            return Histogram([*_histograms(family.samples, started_ns, now_ns)], cumulative)
    return None


def _number(sample: Sample, started_ns: int | None, now_ns: int) -> NumberDataPoint:
    # The protocol has no start of a gauge: its encoder leaves 0 out.
    return NumberDataPoint(dict(sample.labels), started_ns or 0, now_ns, float(sample.value))


def _histograms(samples: Sequence[Sample], started_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    """Buckets of the registry are cumulative, and those of the protocol are not."""
    series: dict[LabelValues, dict[str, Any]] = {}
    for each in samples:
        labels = {name: value for name, value in each.labels.items() if name != "le"}
        found = series.setdefault(tuple(sorted(labels.items())), {"labels": labels, "le": []})
        if each.name.endswith("_bucket"):
            found["le"].append((float(each.labels["le"]), int(each.value)))
        elif each.name.endswith("_sum"):
            found["sum"] = float(each.value)
    for found in series.values():
        ends, totals = zip(*sorted(found["le"]), strict=True)
        counts = [total - former for total, former in zip(totals, (0, *totals), strict=False)]
        yield HistogramDataPoint(
            attributes=found["labels"],
            start_time_unix_nano=started_ns,
            time_unix_nano=now_ns,
            count=totals[-1],
            sum=found["sum"],
            bucket_counts=counts,
            explicit_bounds=ends[:-1],  # the last one is infinite
            min=None,  # type: ignore[arg-type] # optional in the protocol; the registry does not keep it
            max=None,  # type: ignore[arg-type]
        )
