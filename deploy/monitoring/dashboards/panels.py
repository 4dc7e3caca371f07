"""What a table of panels holds, and its shorthand for queries: PromQL without what all queries share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deniable.deploy.monitoring.metrics_table import METRICS
from deniable.protocol.metric import Metric

NAME = re.compile(r"deniable_\w+")
SERIES = re.compile(rf"(?P<rate>rate\()?(?P<name>{NAME.pattern})(?:{{(?P<matchers>[^}}]*)}})?")
BY_NAME = {metric.exposed: metric for metric in METRICS}


@dataclass(frozen=True)
class Panel:
    """Lines over time, from 0 up.

    Parameters
    ----------
    unit : Grafana's name of it; Grafana writes an unknown one behind the figure.
    question : what the panel answers; its metrics' meanings and remedies follow in the description.
    queries : PromQL in the shorthand of `promql`, by legend, which may contain labels as `{{label}}`.
        `max by`, since two workers may export one partition or collection while it moves between them.
    explained : names of the metrics to describe; None: those of the queries, in their order.
    width : of the 24 columns of a dashboard.
    limit : draws a dashed line, red above it.
    banded : fill the area between the lines `low` and `high`, and hide these lines.
    repeat : a variable, for each of whose values the panel is drawn.
    """

    title: str
    unit: str
    question: str
    queries: Mapping[str, str]
    explained: Sequence[str] | None = None
    width: int = 8
    limit: float | None = None
    banded: bool = False
    repeat: str | None = None

    @property
    def description(self) -> str:
        """Return the question, then a paragraph for each metric."""
        named = [name for query in self.queries.values() for name in NAME.findall(query)]
        metrics = dict.fromkeys(map(_metric, named if self.explained is None else self.explained))
        return "\n\n".join((self.question, *(f"`{metric.exposed}`: {metric.help}" for metric in metrics)))


@dataclass(frozen=True, kw_only=True)
class Columns(Panel):
    """The newest figures: a row for each value of a label, a column for each query, headed by its legend.

    Parameters
    ----------
    label : the only label of the queries' results.
    largest_first : heading of the column that sorts the rows; else the label does.
    decimals, minimum : of the figures.
    height : in Grafana's rows of 30 pixels.
    styles : Grafana's properties of single columns, by heading.
    """

    label: str
    largest_first: str = ""
    decimals: int | None = None
    minimum: float | None = None
    height: int = 16
    styles: Mapping[str, tuple[str, object]]


@dataclass(frozen=True)
class HeatMap(Panel):
    """A distribution over time, of cumulative shares by `le`: darker where their differences are larger."""


#: Panels in their order, and before the first of each row its title.
PanelTable = Sequence[str | Panel]


def durations(histogram: str) -> dict[str, str]:
    """Return queries for the median and the 99th percentile of a histogram, over all processes."""
    buckets = f"sum by (le) (rate({histogram}_bucket))"
    levels = {"median": 0.5, "99 %": 0.99}
    return {legend: f"histogram_quantile({level}, {buckets})" for legend, level in levels.items()}


def promql(query: str) -> str:
    """Return the PromQL of a query.

    Each series is narrowed to the chosen deployment and, if its metric has the label, collections; each rate
    is over Grafana's interval. A series that names its job is left alone. `=~` serves one choice and several.
    """
    return SERIES.sub(_narrowed, query)


def _narrowed(series: re.Match[str]) -> str:
    rate, name, matchers = series["rate"] or "", series["name"], series["matchers"]
    if matchers and "job=" in matchers:
        return series[0]
    chosen = 'job=~"$job"' + (',collection=~"$collection"' if "collection" in _metric(name).labels else "")
    narrowed = f"{chosen},{matchers}" if matchers else chosen
    return f"{rate}{name}{{{narrowed}}}" + ("[$__rate_interval]" if rate else "")


def _metric(name: str) -> Metric:
    return BY_NAME[name.removesuffix("_bucket")]
