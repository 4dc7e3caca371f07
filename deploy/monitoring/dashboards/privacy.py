"""The dashboard of privacy reviewers: what reports cost clients, singly, in a period and in all."""

from deniable.deploy.monitoring.dashboards.panels import Columns, Panel, PanelTable

TITLE = "deniable: privacy budget"
QUESTION = "What can one report reveal, what may a client's reports reveal in a period, and what have they?"
# fmt: off
# A table, a row's title before its panels; of a panel: title, unit and question, then a line for each query.
ROWS: PanelTable = (
    "Promises",
    Columns("Promises", "suffix: nats",
        "What is promised to people who report? One report cannot change the odds of any statement about "
        "them by more than the factor exp(epsilon). All figures are rounded up. An empty field means none.",
        {"odds change at most by":  # above what the floats of exp may round off
            "ceil(1e4 * (1 + 1e-15) * exp(max by (collection) (deniable_epsilon_per_report_nats))) / 1e4",
         "epsilon of a report": "ceil(1e4 * max by (collection) (deniable_epsilon_per_report_nats)) / 1e4",
         "rho of a report": "ceil(1e4 * max by (collection) (deniable_rho_per_report_nats)) / 1e4",
         "epsilon of all reports of one value":
            "ceil(1e4 * max by (collection) (deniable_epsilon_permanent_nats)) / 1e4",
         "epsilon of all reports, any values":
            "ceil(1e4 * max by (collection) (deniable_epsilon_lifetime_nats)) / 1e4",
         "budget of a period": "ceil(1e4 * max by (collection) (deniable_budget_epsilon_nats)) / 1e4",
         "any number of reports": "ceil(1e4 * max by (collection) (deniable_budget_unlimited)) / 1e4"},
        label="collection", decimals=4, height=8,
        styles={"odds change at most by": ("unit", "prefix:×"),
                "any number of reports": ("unit", "bool_yes_no")}),
    "Spending",
    Panel("Budget that one client can have used", "percentunit", "How near is the end of the budget?",
        {"{{collection}}": "max by (collection) (deniable_budget_used_bound_ratio)"}, limit=0.8),
    Panel("Budget that one client has used", "percentunit",
        "How much has the client spent that spent most, according to producers?",
        {"{{collection}}": "max by (collection) (deniable_producer_budget_used_ratio)"}, limit=0.8),
    Panel("Reports refused by limits", "suffix: reports/s", "Do limits refuse reports?",
        {"{{collection}}: {{reason}}":
            "sum by (collection, reason) ("
            'rate(deniable_producer_refused_total{reason=~"over_budget|over_window"}))'}),
    Panel("Epsilon that one client can have used", "suffix: nats",
        "What can all reports of a client reveal together by now, compared with the budget?",
        {"{{collection}}: used": "max by (collection) (deniable_budget_used_bound_nats)",
         "{{collection}}: used, any values": "max by (collection) (deniable_budget_used_any_nats)",
         "{{collection}}: budget": "max by (collection) (deniable_budget_epsilon_nats)"}, width=12),
    Panel("Reports that one client can have sent", "suffix: reports", "How many reports is that?",
        {"{{collection}}": "max by (collection) (deniable_budget_reports_bound)"}, width=12),
)
