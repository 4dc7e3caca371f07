"""What a panel is made of: a question, what the metrics mean, a unit, queries.

Every query is matched by `=~`, so that the same text serves one choice of a variable and several.
"""

from collections.abc import Mapping
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, prometheus, table, timeseries
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from producers.metrics.metric import HistogramMetric, Metric

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
HEIGHT = 8  # of a panel, of Grafana's rows of 30 pixels
JOB = 'job=~"$job"'  # a deployment, see `deploy/monitoring/prometheus/recording.yml`
COLLECTION = 'collection=~"$collection"'

#: Grafana's own names of units; what it has no name for it writes behind the figure.
SHARE, SECONDS, BYTES, BYTES_PER_SECOND, NUMBER = "percentunit", "s", "bytes", "Bps", "short"
RECORDS, REPORTS_PER_SECOND, PACKS_PER_SECOND = "suffix: records", "suffix: reports/s", "suffix: packs/s"
NATS, FACTOR = "suffix: nats", "prefix:×"


def told(question: str, *metrics: Metric) -> str:
    """A panel's description: the question that it answers, then what the catalogue says of its metrics."""
    return "\n\n".join((question, *(f"`{metric.exposed}`: {metric.help}" for metric in metrics)))


def series(metric: Metric, *matchers: str) -> str:
    """What the chosen deployment tells of a metric, of a histogram its buckets, as PromQL."""
    name = f"{metric.exposed}_bucket" if isinstance(metric, HistogramMetric) else metric.exposed
    return f"{name}{{{','.join((JOB, *matchers))}}}"


def rate(metric: Metric, *matchers: str) -> str:
    """Increase of a counter, or of the buckets of a histogram, a second, as PromQL."""
    return f"rate({series(metric, *matchers)}[$__rate_interval])"


def largest(by: str, metric: Metric, *matchers: str) -> str:
    """The largest figure of the chosen deployment for each value of a label, as PromQL.

    While a partition or a collection changes hands two workers may tell of it.
    """
    return f"max by ({by}) ({series(metric, *matchers)})"


def durations(title: str, question: str, metric: HistogramMetric) -> timeseries.Panel:
    """A panel with the median and the 99th percentile of a histogram in seconds, over all workers."""
    buckets = f"sum by (le) ({rate(metric)})"
    shown = {
        "median": f"histogram_quantile(0.5, {buckets})",
        "99 %": f"histogram_quantile(0.99, {buckets})",
    }
    return lines(title, told(question, metric), SECONDS, shown)


def lines(title: str, description: str, unit: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """A panel of lines over time, from 0 on.

    Parameters
    ----------
    title, description, unit : what the panel says of itself.
    queries : PromQL by legend, which may hold labels as `{{label}}`.
    """
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(DATASOURCE)
    panel = panel.height(HEIGHT).span(8).axis_soft_min(0).fill_opacity(0).line_width(1)
    for letter, (legend, expression) in zip(ascii_uppercase, queries.items(), strict=False):
        panel = panel.with_target(_query(letter, expression).range().legend_format(legend))
    return panel


def limited(panel: timeseries.Panel, limit: float) -> timeseries.Panel:
    """The panel with a dashed line at a limit, red from there on."""
    steps = [Threshold(None, "green"), Threshold(limit, "red")]
    panel = panel.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))


def banded(panel: timeseries.Panel, low: str, high: str) -> timeseries.Panel:
    """The panel with the area between two of its lines filled, and these lines not drawn."""
    edge = [DynamicConfigValue("custom.lineWidth", 0)]
    fill = [DynamicConfigValue("custom.fillBelowTo", low), DynamicConfigValue("custom.fillOpacity", 25)]
    return panel.override_by_name(low, edge).override_by_name(high, edge + fill)


def columns(
    title: str, description: str, unit: str, label: str, queries: Mapping[str, str], largest_first: str = ""
) -> table.Panel:
    """A table of the newest figures: a row for each value of a label, a column for each query.

    Parameters
    ----------
    title, description, unit : what the panel says of itself.
    label : the one label of all the queries' results.
    queries : PromQL by heading of the column.
    largest_first : heading of the column that sorts the rows; else the label does.
    """
    panel = table.Panel().title(title).description(description).unit(unit).datasource(DATASOURCE)
    panel = panel.height(2 * HEIGHT).span(24)
    for letter, expression in zip(ascii_uppercase, queries.values(), strict=False):
        panel = panel.with_target(_query(letter, expression).instant().format(PromQueryFormat.TABLE))
    headings = dict(zip((f"Value #{letter}" for letter in ascii_uppercase), queries, strict=False))
    order = {"field": largest_first, "desc": True} if largest_first else {"field": label}
    for name, options in (
        ("joinByField", {"byField": label, "mode": "outer"}),
        ("filterFieldsByName", {"include": {"names": [label, *headings]}}),
        ("organize", {"renameByName": headings}),
        ("sortBy", {"sort": [order]}),
    ):
        panel = panel.with_transformation(DataTransformerConfig(id_val=name, options=options))
    return panel


def _query(letter: str, expression: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().ref_id(letter).expr(expression).datasource(DATASOURCE)
