"""Extract the queries of dashboards from their JSON; derive the labels of a result from our metrics."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser as ast

from deniable.protocol.metric import HistogramMetric, Metric

VALUE = None  # a number or a text, not a vector

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


def samples(metrics: Iterable[Metric]) -> dict[str, frozenset[str]]:
    """Return the labels of every series that Prometheus stores: the metric's and the deployment's."""
    found: dict[str, frozenset[str]] = {}
    for metric in metrics:
        labels = frozenset({*metric.labels, "job"})
        if isinstance(metric, HistogramMetric):
            found |= {f"{metric.exposed}_{end}": labels for end in ("sum", "count")}
            found[f"{metric.exposed}_bucket"] = labels | {"le"}
        else:
            found[metric.exposed] = labels
    return found


def labels_of(expression: ast.Expr, series: dict[str, frozenset[str]]) -> frozenset[str] | None:
    """Return the labels of an expression's result; VALUE for a number or text.

    Raises
    ------
    ValueError for a series that does not exist, a label that a series lacks, two sides with different labels,
    and syntax that dashboards do not use (`on`, `or`, subqueries).
    """
    match expression:
        case ast.NumberLiteral() | ast.StringLiteral():
            return VALUE
        case ast.ParenExpr():
            return labels_of(expression.expr, series)
        case ast.MatrixSelector():
            return labels_of(expression.vector_selector, series)
        case ast.VectorSelector():
            return _selected(expression, series)
        case ast.AggregateExpr():
            return _aggregated(expression, series)
        case ast.Call():
            return _called(expression, series)
        case ast.BinaryExpr(modifier=None):
            return _joined(expression, series)
    raise ValueError(f"no dashboard needs {type(expression).__name__}: {expression.prettify()}")


def _selected(selector: ast.VectorSelector, series: dict[str, frozenset[str]]) -> frozenset[str]:
    name = selector.name or ""
    if name not in series:
        raise ValueError(f"no metric is called {name!r}")
    _need({matcher.name for matcher in selector.matchers.matchers}, series[name], name)
    return series[name]


def _aggregated(expression: ast.AggregateExpr, series: dict[str, frozenset[str]]) -> frozenset[str]:
    inner = labels_of(expression.expr, series) or frozenset()
    if expression.modifier is None:
        return frozenset()
    named = frozenset(expression.modifier.labels)
    _need(named, inner, expression.expr.prettify())
    return named if expression.modifier.type == ast.AggModifierType.By else inner - named


def _called(call: ast.Call, series: dict[str, frozenset[str]]) -> frozenset[str] | None:
    found = [labels for each in call.args if (labels := labels_of(each, series)) is not VALUE]
    result = found[0] if found else VALUE
    if call.func.name == "label_replace" and result is not VALUE:
        _, target, _, source, _ = call.args
        _need({source.val}, result, call.prettify())
        return result | {target.val}
    if call.func.name == "histogram_quantile" and result is not VALUE:
        _need({"le"}, result, call.prettify())
        return result - {"le"}
    return result


def _joined(expression: ast.BinaryExpr, series: dict[str, frozenset[str]]) -> frozenset[str] | None:
    left, right = labels_of(expression.lhs, series), labels_of(expression.rhs, series)
    if VALUE not in (left, right) and left != right:
        raise ValueError(f"the two sides have different labels: {expression.prettify()}")
    return right if left is VALUE else left


def _need(needed: Iterable[str], present: frozenset[str], of: str) -> None:
    if absent := set(needed) - present:
        raise ValueError(f"{of} has no label {', '.join(sorted(absent))}")
