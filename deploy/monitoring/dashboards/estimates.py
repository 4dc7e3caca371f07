"""The dashboard of estimates: values, errors and history."""

from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from aggregator.metrics import definitions
from deploy.monitoring.dashboards.frame import Panels, chosen, framed, one_collection
from deploy.monitoring.dashboards.panels import (
    COLLECTION,
    NUMBER,
    SECONDS,
    SHARE,
    banded,
    columns,
    described,
    largest,
    lines,
    rate,
    series,
)

ONE_VALUE = 'value=~"$value"'
FREQUENCY = definitions.ESTIMATE_FREQUENCY
#: Estimate and ends of its 95 % interval, as in the record.
INTERVAL = {"estimate": FREQUENCY, "low": definitions.ESTIMATE_LOW, "high": definitions.ESTIMATE_HIGH}


def estimates() -> Dashboard:
    """Build the dashboard for analysts."""
    values = chosen("value", series(FREQUENCY, COLLECTION)).multi(True)
    return framed(
        "deniable-estimates",
        "deniable: estimates",
        "What are the estimates, how certain are they, and how have they changed?",
        [one_collection(), values],
        {"Newest window": (_newest(), *_behind()), "History": (_leading(), _other(), _one_value())},
    )


def _newest() -> table.Panel:
    figures = {**INTERVAL, "standard error": definitions.ESTIMATE_STD_ERROR}
    queries = {heading: largest("value", metric, COLLECTION) for heading, metric in figures.items()}
    question = "What is the newest estimate, and how uncertain is it?"
    panel = columns("Estimates", described(question, *figures.values()), SHARE, "value", queries, "estimate")
    bar = DynamicConfigValue("custom.cellOptions", {"type": "gauge", "mode": "basic"})
    return panel.min(0).override_by_name("estimate", [bar])


def _behind() -> Panels:
    start = largest("collection", definitions.ESTIMATE_WINDOW_START, COLLECTION)
    reports = largest("collection", definitions.ESTIMATE_REPORTS, COLLECTION)
    dropped = f"sum by (collection) ({rate(definitions.ESTIMATE_VALUES_DROPPED, COLLECTION)})"
    return (
        lines(
            "Reports behind the estimate",
            described(
                "Are there enough reports? The error falls with the square root of their number, which "
                "starts again from 0 with each window.",
                definitions.ESTIMATE_REPORTS,
            ),
            NUMBER,
            {"{{collection}}": reports},
        ),
        lines(
            "Time since the newest window began",
            described(
                "Is the estimate old? Its age should rise to little more than the length of a window.",
                definitions.ESTIMATE_WINDOW_START,
            ),
            SECONDS,
            {"{{collection}}": f"time() - {start}"},
        ),
        lines(
            "Values not shown",
            described("Do these panels leave values out?", definitions.ESTIMATE_VALUES_DROPPED),
            "suffix: values/s",
            {"{{collection}}": dropped},
        ),
    )


def _leading() -> timeseries.Panel:
    shares = largest("value", FREQUENCY, COLLECTION)
    question = "Which values lead, and since when? Differences within the intervals below may be noise."
    return lines("Leading values", described(question, FREQUENCY), SHARE, {"{{value}}": shares}).span(12)


def _other() -> timeseries.Panel:
    figures = {
        "estimate": definitions.ESTIMATE_OTHER_FREQUENCY,
        "standard error": definitions.ESTIMATE_OTHER_STD_ERROR,
    }
    question = "What share is in no listed value? It has a standard error, but no interval."
    queries = {legend: largest("collection", metric, COLLECTION) for legend, metric in figures.items()}
    return lines("Other", described(question, *figures.values()), SHARE, queries).span(12)


def _one_value() -> timeseries.Panel:
    queries = {legend: largest("value", each, COLLECTION, ONE_VALUE) for legend, each in INTERVAL.items()}
    question = "Has the share of this value changed?"
    panel = lines("$value", described(question, *INTERVAL.values()), SHARE, queries)
    return banded(panel, "low", "high").span(24).repeat("value").repeat_direction("h").max_per_row(3)
