"""The dashboard of privacy: what reports cost clients, singly, in a period and in all."""

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from deniable.aggregator.metrics import definitions as workers
from deniable.deploy.monitoring.dashboards.frame import Panels, framed, some_collections
from deniable.deploy.monitoring.dashboards.panels import (
    COLLECTION,
    FACTOR,
    HEIGHT,
    NATS,
    REPORTS_PER_SECOND,
    SHARE,
    columns,
    described,
    largest,
    limited,
    lines,
    rate,
)
from deniable.producers.metrics import definitions as producers
from deniable.protocol.metric import Metric

NEARLY_USED = 0.8  # of a budget
ODDS = "odds change at most by"
ENDLESS = "any number of reports"


def privacy() -> Dashboard:
    """Build the dashboard for privacy reviewers."""
    return framed(
        "deniable-privacy",
        "deniable: privacy budget",
        "What can one report reveal, what may a client's reports reveal in a period, and what have they?",
        [some_collections()],
        {"Promises": (_promises(),), "Spending": _spending()},
    )


def _promises() -> table.Panel:
    figures = {
        "epsilon of a report": workers.EPSILON_PER_REPORT,
        "rho of a report": workers.RHO_PER_REPORT,
        "epsilon of all reports of one value": workers.EPSILON_PERMANENT,
        "epsilon of all reports, any values": workers.EPSILON_LIFETIME,
        "budget of a period": workers.BUDGET_EPSILON,
        ENDLESS: workers.BUDGET_UNLIMITED,
    }
    losses = {heading: _largest(metric) for heading, metric in figures.items()}
    # Above what the floats of exp may round off.
    queries = {ODDS: f"(1 + 1e-15) * exp({_largest(workers.EPSILON_PER_REPORT)})"} | losses
    rounded_up = {heading: f"ceil(1e4 * {query}) / 1e4" for heading, query in queries.items()}
    question = (
        "What is promised to people who report? One report cannot change the odds of any statement about "
        "them by more than the factor exp(epsilon). All figures are rounded up. An empty field means none."
    )
    panel = columns("Promises", described(question, *figures.values()), NATS, "collection", rounded_up)
    panel = panel.override_by_name(ODDS, [DynamicConfigValue("unit", FACTOR)])
    panel = panel.override_by_name(ENDLESS, [DynamicConfigValue("unit", "bool_yes_no")])
    return panel.decimals(4).height(HEIGHT)


def _spending() -> Panels:
    bound, held = workers.BUDGET_USED_BOUND_RATIO, producers.BUDGET_USED
    refused = rate(producers.REFUSED, COLLECTION, 'reason=~"over_budget|over_window"')
    return (
        limited(
            lines(
                "Budget that one client can have used",
                described("How near is the end of the budget?", bound),
                SHARE,
                {"{{collection}}": _largest(bound)},
            ),
            NEARLY_USED,
        ),
        limited(
            lines(
                "Budget that one client has used",
                described("How much has the client spent that spent most, according to producers?", held),
                SHARE,
                {"{{collection}}": _largest(held)},
            ),
            NEARLY_USED,
        ),
        lines(
            "Reports refused by limits",
            described("Do limits refuse reports?", producers.REFUSED),
            REPORTS_PER_SECOND,
            {"{{collection}}: {{reason}}": f"sum by (collection, reason) ({refused})"},
        ),
        lines(
            "Epsilon that one client can have used",
            described(
                "What can all reports of a client reveal together by now, compared with the budget?",
                workers.BUDGET_USED_BOUND,
                workers.BUDGET_USED_ANY,
                workers.BUDGET_EPSILON,
            ),
            NATS,
            {
                "{{collection}}: used": _largest(workers.BUDGET_USED_BOUND),
                "{{collection}}: used, any values": _largest(workers.BUDGET_USED_ANY),
                "{{collection}}: budget": _largest(workers.BUDGET_EPSILON),
            },
        ).span(12),
        lines(
            "Reports that one client can have sent",
            described("How many reports is that?", workers.BUDGET_REPORTS_BOUND),
            "suffix: reports",
            {"{{collection}}": _largest(workers.BUDGET_REPORTS_BOUND)},
        ).span(12),
    )


def _largest(metric: Metric) -> str:
    """Return the PromQL of each collection's largest figure over all workers or producers."""
    return largest("collection", metric, COLLECTION)
