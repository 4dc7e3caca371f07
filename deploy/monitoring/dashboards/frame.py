"""The frame of all dashboards: stable ids, and variables for data source, deployment and collections."""

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from deniable.aggregator.metrics.definitions import EPSILON_PER_REPORT
from deniable.deploy.monitoring.dashboards.panels import DATASOURCE, series

TAG = "deniable"

Panels = Sequence[Builder[model.Panel]]


def framed(
    uid: str, title: str, description: str, variables: Sequence[QueryVariable], rows: Mapping[str, Panels]
) -> model.Dashboard:
    """Build a whole dashboard.

    Parameters
    ----------
    uid : used by links; never changes.
    title, description : texts of the dashboard.
    variables : beside data source and deployment, which is always a single one, since deployments share names
        of collections and numbers of partitions.
    rows : panels by the title of their row, numbered in this order.
    """
    frame = Dashboard(title).uid(uid).description(description).tags([TAG])
    frame = frame.time("now-3h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR)
    prometheus = DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    frame = frame.link(_others()).with_variable(prometheus)
    for variable in (chosen("job", EPSILON_PER_REPORT.exposed), *variables):
        frame = frame.with_variable(variable)
    for heading, panels in rows.items():
        frame = frame.with_row(Row(heading))
        for panel in panels:
            frame = frame.with_panel(panel)
    built = frame.build()
    for number, each in enumerate(built.panels or (), start=1):
        each.id_val = number
    return built


def one_collection() -> QueryVariable:
    """Build the variable for one collection."""
    return chosen("collection", series(EPSILON_PER_REPORT))


def some_collections() -> QueryVariable:
    """Build the variable for several collections; all at first."""
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    return one_collection().multi(True).include_all(True).all_value(".*").current(everything)


def chosen(label: str, among: str) -> QueryVariable:
    """Build the PromQL that lists a label's values among these series."""
    variable = QueryVariable(label).label(label.capitalize()).datasource(DATASOURCE)
    variable = variable.query({"query": f"label_values({among}, {label})", "refId": label, "qryType": 1})
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.sort(model.VariableSort.ALPHABETICAL_ASC)


def _others() -> DashboardLink:
    link = DashboardLink("deniable").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.as_dropdown(False).include_vars(True).keep_time(True)
