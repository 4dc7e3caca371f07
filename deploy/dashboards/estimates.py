"""What the estimates say, how sure they are, and how it was before."""

from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from aggregator import catalogue
from deploy.dashboards.frame import Panels, chosen, framed, one_collection
from deploy.dashboards.panels import (
    COLLECTION,
    NUMBER,
    SECONDS,
    SHARE,
    banded,
    columns,
    lines,
    rate,
    told,
)
from producers.metric import GaugeMetric

OF_ONE_VALUE = f'{COLLECTION},value=~"$value"'
FREQUENCY, STD_ERROR = catalogue.ESTIMATE_FREQUENCY, catalogue.ESTIMATE_STD_ERROR

INTERVAL = (
    "The 95 % interval is 1.96 standard errors to each side, within 0 and 1. The page and the topic "
    "`estimates` have the one whose coverage is tested: it is about the unconstrained estimate, and differs "
    "from this one most where estimates are held at 0."
)


def estimates() -> Dashboard:
    """The dashboard for who asks what the answers are."""
    values = chosen("value", f"{FREQUENCY.exposed}{{{COLLECTION}}}").multi(True)
    return framed(
        "deniable-estimates",
        "deniable: estimates",
        "What do the estimates say, how sure are they, and how was it before?",
        [one_collection(), values],
        {"Newest window": (_newest(), *_behind()), "History": (_leading(), _other(), _one_value())},
    )


def interval(by: str, matchers: str, frequency: GaugeMetric, std_error: GaugeMetric) -> dict[str, str]:
    """Estimate and ends of its 95 % interval, as PromQL by name. The ends take both figures of one worker.

    Parameters
    ----------
    by : label to tell results apart by.
    matchers : which series.
    frequency, std_error : the metrics, with the same labels.
    """
    share, error = f"{frequency.exposed}{{{matchers}}}", f"1.96 * {std_error.exposed}{{{matchers}}}"
    return {
        "estimate": f"max by ({by}) ({share})",
        "low": f"max by ({by}) (clamp_min({share} - {error}, 0))",
        "high": f"max by ({by}) (clamp_max({share} + {error}, 1))",
    }


def _newest() -> table.Panel:
    question = f"What is the answer now, and what else may be true? {INTERVAL}"
    queries = interval("value", COLLECTION, FREQUENCY, STD_ERROR)
    panel = columns("Estimates", told(question, FREQUENCY, STD_ERROR), SHARE, "value", queries, "estimate")
    bar = DynamicConfigValue("custom.cellOptions", {"type": "gauge", "mode": "basic"})
    return panel.min(0).override_by_name("estimate", [bar])


def _behind() -> Panels:
    start = f"max by (collection) ({catalogue.ESTIMATE_WINDOW_START.exposed}{{{COLLECTION}}})"
    reports = f"max by (collection) ({catalogue.ESTIMATE_REPORTS.exposed}{{{COLLECTION}}})"
    dropped = f"sum by (collection) ({rate(catalogue.ESTIMATE_VALUES_DROPPED, COLLECTION)})"
    return (
        lines(
            "Reports behind the estimate",
            told(
                "Do enough answer? The error falls with the root of their number, which starts anew with "
                "each window.",
                catalogue.ESTIMATE_REPORTS,
            ),
            NUMBER,
            {"{{collection}}": reports},
        ),
        lines(
            "Time since the newest window began",
            told(
                "Is the answer old? It should rise to little more than the length of a window.",
                catalogue.ESTIMATE_WINDOW_START,
            ),
            SECONDS,
            {"{{collection}}": f"time() - {start}"},
        ),
        lines(
            "Values not shown",
            told("Do these panels leave values out?", catalogue.ESTIMATE_VALUES_DROPPED),
            "suffix: values/s",
            {"{{collection}}": dropped},
        ),
    )


def _leading() -> timeseries.Panel:
    shares = f"max by (value) ({FREQUENCY.exposed}{{{COLLECTION}}})"
    question = "Who leads, and since when? Differences within the intervals of the panels below may be noise."
    return lines("Leading values", told(question, FREQUENCY), SHARE, {"{{value}}": shares}).span(12)


def _other() -> timeseries.Panel:
    metrics = (catalogue.ESTIMATE_OTHER_FREQUENCY, catalogue.ESTIMATE_OTHER_STD_ERROR)
    question = f"How much is in none of the values listed? {INTERVAL}"
    panel = lines("Other", told(question, *metrics), SHARE, interval("collection", COLLECTION, *metrics))
    return banded(panel, "low", "high").span(12)


def _one_value() -> timeseries.Panel:
    question = f"Has the share of this value changed? {INTERVAL}"
    queries = interval("value", OF_ONE_VALUE, FREQUENCY, STD_ERROR)
    panel = lines("$value", told(question, FREQUENCY, STD_ERROR), SHARE, queries)
    return banded(panel, "low", "high").span(24).repeat("value").repeat_direction("h").max_per_row(3)
