"""The queries of dashboards, as Prometheus is asked them. Needs their JSON alone."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

#: What Grafana puts in place of its variables: everything, and rates over a minute.
EVERYTHING = {"$job": ".*", "$collection": ".*", "$value": ".*", "$__rate_interval": "1m"}


class Query(NamedTuple):
    """One query: where it stands, its PromQL, and the legend, which names labels as `{{label}}`."""

    dashboard: str
    panel: str
    expression: str
    legend: str


def queries(folder: Path, variables: Mapping[str, str] = EVERYTHING) -> Iterator[Query]:
    """All queries of the dashboards in a folder, in the order in which they stand there.

    Parameters
    ----------
    folder : holds a `.json` file for each dashboard.
    variables : what stands in place of each, by its name with the dollar sign.
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
