"""Build panels from a question, the metrics' meanings, a unit and queries.

Every query matches by `=~`, so the same text serves one choice of a variable and several.
"""

from collections.abc import Mapping
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, heatmap, prometheus, table, timeseries
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deniable.protocol.metric import HistogramMetric, Metric

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
HEIGHT = 8  # of a panel, of Grafana's rows of 30 pixels
JOB = 'job=~"$job"'  # a deployment, see `deploy/monitoring/prometheus/recording.yml`
COLLECTION = 'collection=~"$collection"'

#: Grafana's names of units; it writes unknown ones behind the figure.
SHARE, SECONDS, BYTES, BYTES_PER_SECOND, NUMBER = "percentunit", "s", "bytes", "Bps", "short"
RECORDS, REPORTS_PER_SECOND, PACKS_PER_SECOND = "suffix: records", "suffix: reports/s", "suffix: packs/s"
NATS, FACTOR = "suffix: nats", "prefix:×"


def described(question: str, *metrics: Metric) -> str:
    """Return a panel's description: the question that it answers, then its metrics' meanings and remedies."""
    return "\n\n".join((question, *(f"`{metric.exposed}`: {metric.help}" for metric in metrics)))


def series(metric: Metric, *matchers: str) -> str:
    """Return the PromQL of a metric of the chosen deployment; of a histogram, of its buckets."""
    name = f"{metric.exposed}_bucket" if isinstance(metric, HistogramMetric) else metric.exposed
    return f"{name}{{{','.join((JOB, *matchers))}}}"


def rate(metric: Metric, *matchers: str) -> str:
    """Return the PromQL of the rate per second of a counter, or of a histogram's buckets."""
    return f"rate({series(metric, *matchers)}[$__rate_interval])"


def largest(by: str, metric: Metric, *matchers: str) -> str:
    """Return the PromQL of the largest figure of the chosen deployment for each value of a label.

    Two workers may export the same partition or collection while it moves between them.
    """
    return f"max by ({by}) ({series(metric, *matchers)})"


def durations(title: str, question: str, metric: HistogramMetric) -> timeseries.Panel:
    """Build a panel with median and 99th percentile of a histogram in seconds, over all workers."""
    buckets = f"sum by (le) ({rate(metric)})"
    shown = {
        "median": f"histogram_quantile(0.5, {buckets})",
        "99 %": f"histogram_quantile(0.99, {buckets})",
    }
    return lines(title, described(question, metric), SECONDS, shown)


def lines(title: str, description: str, unit: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """Build a panel of lines over time, from 0 up.

    Parameters
    ----------
    title, description, unit : texts of the panel.
    queries : PromQL by legend, which may contain labels as `{{label}}`.
    """
    panel = timeseries.Panel().title(title).description(description).unit(unit).datasource(DATASOURCE)
    panel = panel.height(HEIGHT).span(8).axis_soft_min(0).fill_opacity(0).line_width(1)
    for letter, (legend, expression) in zip(ascii_uppercase, queries.items(), strict=False):
        panel = panel.with_target(_query(letter, expression).range().legend_format(legend))
    return panel


def limited(panel: timeseries.Panel, limit: float) -> timeseries.Panel:
    """Add a dashed line at a limit, red above it."""
    steps = [Threshold(None, "green"), Threshold(limit, "red")]
    panel = panel.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))


def banded(panel: timeseries.Panel, low: str, high: str) -> timeseries.Panel:
    """Fill the area between two lines, and hide these lines."""
    edge = [DynamicConfigValue("custom.lineWidth", 0)]
    fill = [DynamicConfigValue("custom.fillBelowTo", low), DynamicConfigValue("custom.fillOpacity", 25)]
    return panel.override_by_name(low, edge).override_by_name(high, edge + fill)


def heat_map(title: str, description: str, unit: str, expression: str) -> heatmap.Panel:
    """Build a panel that shows a distribution over time: darker where the share is larger.

    Parameters
    ----------
    title, description : texts of the panel.
    unit : of the numbers.
    expression : PromQL of cumulative shares, by the label `le` alone; Grafana takes their differences.
    """
    panel = heatmap.Panel().title(title).description(description).unit(SHARE).datasource(DATASOURCE)
    colors = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(64).min(0)
    panel = panel.height(HEIGHT).span(24).calculate(False).color(colors).hide_legend()
    panel = panel.y_axis(heatmap.YAxisConfig().unit(unit)).mode(TooltipDisplayMode.SINGLE)
    panel = panel.cell_values(heatmap.CellValues().unit(SHARE))
    query = _query("A", expression).range().legend_format("{{le}}").format(PromQueryFormat.HEATMAP)
    return panel.with_target(query)


def columns(
    title: str, description: str, unit: str, label: str, queries: Mapping[str, str], largest_first: str = ""
) -> table.Panel:
    """Build a table of the newest figures: a row for each value of a label, a column for each query.

    Parameters
    ----------
    title, description, unit : texts of the panel.
    label : the only label of the queries' results.
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
