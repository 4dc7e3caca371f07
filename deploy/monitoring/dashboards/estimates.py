"""The dashboard of estimates: values, errors and history."""

from grafana_foundation_sdk.builders import heatmap, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from deniable.aggregator.metrics import definitions
from deniable.deploy.monitoring.dashboards.frame import Panels, chosen, framed, one_collection
from deniable.deploy.monitoring.dashboards.panels import (
    COLLECTION,
    NUMBER,
    SECONDS,
    SHARE,
    banded,
    columns,
    described,
    heat_map,
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
        {
            "Newest window": (_newest(), *_behind(), _fit()),
            "Lists of candidates": (_list_fit(), _unexplained(), _found_texts()),
            "History": (_leading(), _other(), _one_value()),
            "Changes": (_change(), _changed_since(), _mean_change(), _mean_changed_since()),
            "Numbers": (_distribution(), _mean(), _quantiles(), *_quantile_ends()),
            "Pairs": (_independence(),),
        },
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


def _fit() -> timeseries.Panel:
    metric = definitions.ESTIMATE_FIT_P_VALUE
    question = "Do any true values explain the counts? Below 1e-6 none do."
    fit = f"min by (collection) ({series(metric, COLLECTION)})"
    return lines("Fit", described(question, metric), NUMBER, {"{{collection}}": fit})


def _list_fit() -> timeseries.Panel:
    ratio, limit = definitions.LIST_CHI_SQUARE, definitions.LIST_CHI_SQUARE_LIMIT
    question = "Does the list of candidates lack strings? It does while the ratio is above the limit."
    queries = {
        "{{collection}}": largest("collection", ratio, COLLECTION),
        "{{collection}}: limit": largest("collection", limit, COLLECTION),
    }
    return lines("Fit of the candidates", described(question, ratio, limit), NUMBER, queries)


def _unexplained() -> timeseries.Panel:
    counted = {
        "bits": definitions.LIST_UNEXPLAINED_BITS,
        "values": definitions.LIST_UNRELIABLE_VALUES,
        "unlisted texts": definitions.LIST_UNLISTED_TEXTS,
    }
    question = "How much do unlisted strings hide, and how many frequent ones are there?"
    queries = {
        f"{{{{collection}}}}: {what}": largest("collection", metric, COLLECTION)
        for what, metric in counted.items()
    }
    title = "Unexplained bits, unreliable values, unlisted texts"
    return lines(title, described(question, *counted.values()), NUMBER, queries)


def _found_texts() -> timeseries.Panel:
    question = "How many texts that nobody listed are frequent now?"
    texts = {"{{collection}}": largest("collection", definitions.FOUND_TEXTS, COLLECTION)}
    return lines("Texts found", described(question, definitions.FOUND_TEXTS), NUMBER, texts)


def _leading() -> timeseries.Panel:
    shares = largest("value", FREQUENCY, COLLECTION)
    question = "Which values lead, and since when? Differences within the intervals below may be noise."
    return lines("Leading values", described(question, FREQUENCY), SHARE, {"{{value}}": shares}).span(12)


def _other() -> timeseries.Panel:
    figures = {
        "estimate": definitions.ESTIMATE_OTHER_FREQUENCY,
        "low": definitions.ESTIMATE_OTHER_LOW,
        "high": definitions.ESTIMATE_OTHER_HIGH,
        "standard error": definitions.ESTIMATE_OTHER_STD_ERROR,
        "frequent texts": definitions.LIST_UNLISTED,
    }
    question = (
        "What share is in no listed value, how uncertain is it, and how much of it have frequent texts?"
    )
    queries = {legend: largest("collection", metric, COLLECTION) for legend, metric in figures.items()}
    panel = lines("Other", described(question, *figures.values()), SHARE, queries)
    return banded(panel, "low", "high").span(12)


def _distribution() -> heatmap.Panel:
    metric = definitions.ESTIMATE_BELOW
    question = (
        "How is the number distributed, and has that changed? A column for each time, darker where more are."
    )
    # Grafana takes the differences of series in the order of their `le`, a label of histograms.
    shares = f'max by (le) (label_replace({series(metric, COLLECTION)}, "le", "$1", "edge", "(.*)"))'
    return heat_map("Distribution", described(question, metric), NUMBER, shares)


def _mean() -> timeseries.Panel:
    figures = {
        "mean": definitions.ESTIMATE_MEAN,
        "low": definitions.ESTIMATE_MEAN_LOW,
        "high": definitions.ESTIMATE_MEAN_HIGH,
    }
    queries = {legend: largest("collection", each, COLLECTION) for legend, each in figures.items()}
    question = "What is the mean of the number, and has it changed?"
    panel = lines("Mean", described(question, *figures.values()), NUMBER, queries)
    return banded(panel, "low", "high").span(12)


def _quantiles() -> timeseries.Panel:
    queries = {"{{level}}": largest("level", definitions.ESTIMATE_QUANTILE, COLLECTION)}
    question = "How is the number distributed, and has that changed?"
    return lines("Quantiles", described(question, definitions.ESTIMATE_QUANTILE), NUMBER, queries).span(12)


def _quantile_ends() -> Panels:
    ends = {
        "Lower ends of the quantiles": definitions.ESTIMATE_QUANTILE_LOW,
        "Upper ends of the quantiles": definitions.ESTIMATE_QUANTILE_HIGH,
    }
    return tuple(
        lines(
            title,
            described("How certain are the quantiles?", metric),
            NUMBER,
            {"{{level}}": largest("level", metric, COLLECTION)},
        ).span(12)
        for title, metric in ends.items()
    )


def _change() -> timeseries.Panel:
    ends = {
        "change": definitions.SHARE_CHANGE,
        "low": definitions.SHARE_CHANGE_LOW,
        "high": definitions.SHARE_CHANGE_HIGH,
    }
    queries = {f"{{{{value}}}} {name}": largest("value", each, COLLECTION) for name, each in ends.items()}
    question = "Which shares changed lately, and by how much? Nothing is shown while none has."
    return lines("Changes of shares", described(question, *ends.values()), SHARE, queries).span(12)


def _changed_since() -> timeseries.Panel:
    metric = definitions.SHARE_CHANGE_SINCE
    queries = {"{{value}}": f"1000 * {largest('value', metric, COLLECTION)}"}
    question = "Since when has each of them been another?"
    return lines("Changed since", described(question, metric), "dateTimeAsIso", queries).span(12)


def _mean_change() -> timeseries.Panel:
    figures = {
        "change": definitions.MEAN_CHANGE,
        "low": definitions.MEAN_CHANGE_LOW,
        "high": definitions.MEAN_CHANGE_HIGH,
    }
    queries = {name: largest("collection", each, COLLECTION) for name, each in figures.items()}
    question = (
        "Has the mean of the number changed lately, and by how much? Nothing is shown while it has not."
    )
    return lines("Change of the mean", described(question, *figures.values()), NUMBER, queries).span(12)


def _mean_changed_since() -> timeseries.Panel:
    metric = definitions.MEAN_CHANGE_SINCE
    queries = {"mean": f"1000 * {largest('collection', metric, COLLECTION)}"}
    question = "Since when has it been another?"
    return lines("Mean changed since", described(question, metric), "dateTimeAsIso", queries).span(12)


def _independence() -> timeseries.Panel:
    metric = definitions.ESTIMATE_INDEPENDENCE_P_VALUE
    queries = {"p-value": largest("collection", metric, COLLECTION)}
    question = "Do the two fields depend on each other? Below 0.05 they do, or it is one of 20 false alarms."
    return lines("Independence", described(question, metric), NUMBER, queries).span(12)


def _one_value() -> timeseries.Panel:
    queries = {legend: largest("value", each, COLLECTION, ONE_VALUE) for legend, each in INTERVAL.items()}
    question = "Has the share of this value changed?"
    panel = lines("$value", described(question, *INTERVAL.values()), SHARE, queries)
    return banded(panel, "low", "high").span(24).repeat("value").repeat_direction("h").max_per_row(3)
