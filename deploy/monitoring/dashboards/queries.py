"""Extract the queries of dashboards from their JSON."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

#: Values for Grafana's variables: everything, and rates over a minute.
EVERYTHING = {"$job": ".*", "$collection": ".*", "$value": ".*", "$__rate_interval": "1m"}


class Query(NamedTuple):
    """One query: its dashboard and panel, its PromQL, and its legend, which names labels as `{{label}}`."""

    dashboard: str
    panel: str
    expression: str
    legend: str


def queries(folder: Path, variables: Mapping[str, str] = EVERYTHING) -> Iterator[Query]:
    """Yield all queries of the dashboards in a folder, in order.

    Parameters
    ----------
    folder : with a `.json` file for each dashboard.
    variables : values by the variable's name with the dollar sign.
    """
    for path in sorted(folder.glob("*.json")):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield _query(dashboard["title"], panel["title"], target, variables)


def _query(dashboard: str, panel: str, target: Mapping[str, Any], variables: Mapping[str, str]) -> Query:
    expression = target["expr"]
    for name, text in variables.items():
        expression = expression.replace(name, text)
    return Query(dashboard, panel, expression, target.get("legendFormat", ""))
