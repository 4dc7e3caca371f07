"""Build a dashboard for Grafana from a table of panels."""

from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Threshold
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deniable.deploy.monitoring.dashboards.panels import Columns, HeatMap, Panel, PanelTable, promql

TAG = "deniable"
DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
HEIGHT = 8  # of a panel, of Grafana's rows of 30 pixels
EVERYWHERE = "deniable_epsilon_per_report_nats"  # every worker exports it, for each collection

AnyPanel = TypeVar("AnyPanel", timeseries.Panel, heatmap.Panel, table.Panel)


def build(
    uid: str, title: str, question: str, rows: PanelTable, values_of: str | None = None
) -> model.Dashboard:
    """Build a whole dashboard.

    One deployment is chosen, never several, since they share names of collections and numbers of partitions.

    Parameters
    ----------
    uid : used by links; never changes.
    values_of : the metric whose values can be chosen, of one collection. Without it, collections are chosen.
    """
    frame = dashboard.Dashboard(title).uid(uid).description(question).tags([TAG])
    frame = frame.time("now-3h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR)
    link = dashboard.DashboardLink(TAG).type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    frame = frame.link(link.as_dropdown(False).include_vars(True).keep_time(True))
    source = dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    frame = frame.with_variable(source).with_variable(_chosen("job", EVERYWHERE))
    collection = _chosen("collection", f'{EVERYWHERE}{{job=~"$job"}}')
    if values_of is None:
        everything = model.VariableOption(selected=True, text="All", value="$__all")
        collection = collection.multi(True).include_all(True).all_value(".*").current(everything)
    frame = frame.with_variable(collection)
    if values_of:
        frame = frame.with_variable(_chosen("value", promql(values_of)).multi(True))
    for row in rows:
        frame = frame.with_row(dashboard.Row(row)) if isinstance(row, str) else frame.with_panel(_built(row))
    built = frame.build()
    for number, each in enumerate(built.panels or (), start=1):
        each.id_val = number
    return built


def _chosen(label: str, among: str) -> dashboard.QueryVariable:
    """Build the variable whose choices are a label's values among these series."""
    variable = dashboard.QueryVariable(label).label(label.capitalize()).datasource(DATASOURCE)
    variable = variable.query({"query": f"label_values({among}, {label})", "refId": label, "qryType": 1})
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.sort(model.VariableSort.ALPHABETICAL_ASC)


def _built(panel: Panel) -> Builder[model.Panel]:
    if isinstance(panel, Columns):
        return _columns(panel)
    return _heat_map(panel) if isinstance(panel, HeatMap) else _lines(panel)


def _lines(panel: Panel) -> timeseries.Panel:
    built = _begun(timeseries.Panel(), panel).unit(panel.unit).height(HEIGHT).span(panel.width)
    built = built.axis_soft_min(0).fill_opacity(0).line_width(1)
    for query, legend in zip(_queries(panel), panel.queries, strict=True):
        built = built.with_target(query.range().legend_format(legend))
    if panel.limit is not None:
        steps = [Threshold(None, "green"), Threshold(panel.limit, "red")]
        limits = dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
        dashed = common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
        built = built.thresholds(limits).thresholds_style(dashed)
    if panel.banded:
        edge = [DynamicConfigValue("custom.lineWidth", 0)]
        fill = [DynamicConfigValue("custom.fillBelowTo", "low"), DynamicConfigValue("custom.fillOpacity", 25)]
        built = built.override_by_name("low", edge).override_by_name("high", edge + fill)
    if panel.repeat:
        built = built.repeat(panel.repeat).repeat_direction("h").max_per_row(3)
    return built


def _columns(panel: Columns) -> table.Panel:
    built = _begun(table.Panel(), panel).unit(panel.unit).height(panel.height).span(24)
    if panel.decimals is not None:
        built = built.decimals(panel.decimals)
    if panel.minimum is not None:
        built = built.min(panel.minimum)
    for query in _queries(panel):
        built = built.with_target(query.instant().format(PromQueryFormat.TABLE))
    headings = dict(zip((f"Value #{letter}" for letter in ascii_uppercase), panel.queries, strict=False))
    order = {"field": panel.largest_first, "desc": True} if panel.largest_first else {"field": panel.label}
    for name, options in (
        ("joinByField", {"byField": panel.label, "mode": "outer"}),
        ("filterFieldsByName", {"include": {"names": [panel.label, *headings]}}),
        ("organize", {"renameByName": headings}),
        ("sortBy", {"sort": [order]}),
    ):
        built = built.with_transformation(model.DataTransformerConfig(id_val=name, options=options))
    for heading, style in panel.styles.items():
        built = built.override_by_name(heading, [DynamicConfigValue(*style)])
    return built


def _heat_map(panel: HeatMap) -> heatmap.Panel:
    colors = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(64).min(0)
    built = _begun(heatmap.Panel(), panel).unit("percentunit").height(HEIGHT).span(24)
    built = built.calculate(False).color(colors).hide_legend().mode(TooltipDisplayMode.SINGLE)
    built = built.y_axis(heatmap.YAxisConfig().unit(panel.unit))
    built = built.cell_values(heatmap.CellValues().unit("percentunit"))
    for query in _queries(panel):
        built = built.with_target(query.range().legend_format("{{le}}").format(PromQueryFormat.HEATMAP))
    return built


def _begun(built: AnyPanel, panel: Panel) -> AnyPanel:
    return built.title(panel.title).description(panel.description).datasource(DATASOURCE)


def _queries(panel: Panel) -> list[prometheus.Dataquery]:
    return [
        prometheus.Dataquery().ref_id(letter).expr(promql(query)).datasource(DATASOURCE)
        for letter, query in zip(ascii_uppercase, panel.queries.values(), strict=False)
    ]
