"""What answers cost those who give them: per report, in a period, and ever."""

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from aggregator.metrics import definitions as workers
from deploy.monitoring.dashboards.frame import Panels, framed, some_collections
from deploy.monitoring.dashboards.panels import (
    COLLECTION,
    FACTOR,
    HEIGHT,
    NATS,
    REPORTS_PER_SECOND,
    SHARE,
    columns,
    largest,
    limited,
    lines,
    rate,
    told,
)
from producers.metrics import definitions as producers
from producers.metrics.metric import Metric

NEARLY_USED = 0.8  # of a budget
ODDS = "odds change at most by"


def privacy() -> Dashboard:
    """The dashboard for who has to answer for what is asked of people."""
    return framed(
        "deniable-privacy",
        "deniable: privacy budget",
        "What can a report give away, how much may a client give away in a period, and how much has one?",
        [some_collections()],
        {"Promises": (_promises(),), "Spending": _spending()},
    )


def _promises() -> table.Panel:
    figures = {
        "epsilon of a report": workers.EPSILON_PER_REPORT,
        "rho of a report": workers.RHO_PER_REPORT,
        "epsilon of all reports": workers.EPSILON_PERMANENT,
        "budget of a period": workers.BUDGET_EPSILON,
    }
    losses = {heading: _largest(metric) for heading, metric in figures.items()}
    queries = {ODDS: f"exp({_largest(workers.EPSILON_PER_REPORT)})"} | losses
    rounded_up = {heading: f"ceil(1e4 * {query}) / 1e4" for heading, query in queries.items()}
    question = (
        "What is promised to who answers? One report cannot change anyone's odds of anything by more than "
        "the factor exp(epsilon). All is rounded up. An empty field: there is none."
    )
    panel = columns("Promises", told(question, *figures.values()), NATS, "collection", rounded_up)
    return panel.override_by_name(ODDS, [DynamicConfigValue("unit", FACTOR)]).decimals(4).height(HEIGHT)


def _spending() -> Panels:
    bound, held = workers.BUDGET_USED_BOUND_RATIO, producers.BUDGET_USED
    refused = rate(producers.REFUSED, COLLECTION, 'reason=~"over_budget|over_window"')
    return (
        limited(
            lines(
                "Budget that one client can have used",
                told("How near is the end of the budget?", bound),
                SHARE,
                {"{{collection}}": _largest(bound)},
            ),
            NEARLY_USED,
        ),
        limited(
            lines(
                "Budget that one client has used",
                told("How much has the one spent that spent most, as producers know it?", held),
                SHARE,
                {"{{collection}}": _largest(held)},
            ),
            NEARLY_USED,
        ),
        lines(
            "Reports refused by limits",
            told("Do limits silence clients?", producers.REFUSED),
            REPORTS_PER_SECOND,
            {"{{collection}}: {{reason}}": f"sum by (collection, reason) ({refused})"},
        ),
        lines(
            "Epsilon that one client can have used",
            told(
                "What can all reports of a client give away together by now, against what is allowed?",
                workers.BUDGET_USED_BOUND,
                workers.BUDGET_EPSILON,
            ),
            NATS,
            {
                "{{collection}}: used": _largest(workers.BUDGET_USED_BOUND),
                "{{collection}}: budget": _largest(workers.BUDGET_EPSILON),
            },
        ).span(12),
        lines(
            "Reports that one client can have sent",
            told("How many reports is that?", workers.BUDGET_REPORTS_BOUND),
            "suffix: reports",
            {"{{collection}}": _largest(workers.BUDGET_REPORTS_BOUND)},
        ).span(12),
    )


def _largest(metric: Metric) -> str:
    """The largest figure of each collection over all workers or producers, as PromQL."""
    return largest("collection", metric, COLLECTION)
