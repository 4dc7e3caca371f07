"""The dashboard of health: counting, final windows, producers' delivery."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deniable.aggregator.metrics import definitions as workers
from deniable.deploy.monitoring.dashboards.frame import Panels, framed, some_collections
from deniable.deploy.monitoring.dashboards.panels import (
    COLLECTION,
    NUMBER,
    PACKS_PER_SECOND,
    RECORDS,
    REPORTS_PER_SECOND,
    SECONDS,
    SHARE,
    described,
    durations,
    largest,
    limited,
    lines,
    rate,
    series,
)
from deniable.deploy.monitoring.dashboards.producing import producing

STILL_WINDOWS, STILL_SECONDS = 3, 600  # the alert DeniableCanaryStill waits this long without a canary


def health() -> Dashboard:
    """Build the dashboard for operators."""
    return framed(
        "deniable-health",
        "deniable: pipeline health",
        "Are reports counted, do windows become final, do producers deliver?",
        [some_collections()],
        {
            "Counting": _counting(),
            "Reports and packs": _accepting(),
            "Windows and estimates": _estimating(),
            "Producers": producing(),
        },
    )


def _counting() -> Panels:
    owned = f"count(count by (partition) ({series(workers.POSITION)}))"
    return (
        lines(
            "Workers and partitions",
            "Is every partition owned? Workers that are scraped, and partitions that they count. If these "
            "are fewer than those of `reports`, records wait: start workers, or see their `/readyz`.",
            NUMBER,
            {"workers": f"count({series(workers.RESYNCS)})", "partitions owned": owned},
        ),
        limited(
            lines(
                "Stalled partitions",
                described("Is any partition stalled?", workers.STALLED),
                NUMBER,
                {"partition {{partition}}": largest("partition", workers.STALLED)},
            ),
            1,
        ),
        lines(
            "Lag",
            described("Does counting keep up?", workers.LAG),
            RECORDS,
            {"partition {{partition}}": largest("partition", workers.LAG)},
        ),
        lines(
            "Age of the newest counted record",
            described(
                "How old is the newest counted record? It ages while nobody reports.", workers.WATERMARK
            ),
            SECONDS,
            {"partition {{partition}}": f"time() - {largest('partition', workers.WATERMARK)}"},
        ),
        lines(
            "Ledgers opened again",
            described("Do workers lose partitions? Ledgers a second.", workers.RESYNCS),
            "suffix:/s",
            {"all workers": f"sum({rate(workers.RESYNCS)})"},
        ),
        durations("Event loop's delay", "Is a worker overloaded?", workers.LOOP_DELAY),
    )


def _accepting() -> Panels:
    rejected, all_packs = rate(workers.PACKS, 'result="rejected"'), rate(workers.PACKS)
    return (
        lines(
            "Reports",
            described("How many reports arrive, and are they counted?", workers.REPORTS),
            REPORTS_PER_SECOND,
            {"{{result}}": f"sum by (result) ({rate(workers.REPORTS, COLLECTION)})"},
        ),
        lines(
            "Rejected share of packs",
            described("Are more packs rejected than usual? Packs of all collections.", workers.PACKS),
            SHARE,
            {"rejected": f"sum({rejected}) / sum({all_packs})"},
        ),
        lines(
            "Packs rejected",
            described("Why are packs rejected? Packs of all collections.", workers.PACKS_REJECTED),
            PACKS_PER_SECOND,
            {"{{reason}}": f"sum by (reason) ({rate(workers.PACKS_REJECTED)})"},
        ),
    )


def _estimating() -> Panels:
    windows = largest("collection, state", workers.WINDOWS, COLLECTION)
    late = largest("collection", workers.WINDOWS, COLLECTION, 'state="late"')
    failures = (workers.ESTIMATE_FAILURES, workers.WINDOWS_LOST, workers.FINALS_REVISED)
    return (
        lines(
            "Windows",
            described("Do windows become final?", workers.WINDOWS),
            NUMBER,
            {"{{state}}": f"sum by (state) ({windows})"},
        ),
        limited(
            lines(
                "Late windows",
                described("Which collections wait for final estimates that are due?", workers.WINDOWS),
                NUMBER,
                {"{{collection}}": late},
            ),
            1,
        ),
        lines(
            "Failures of windows",
            described("Are there windows without an estimate, or with a second final one?", *failures),
            "suffix: windows/s",
            {
                f"{{{{collection}}}}: {metric.name}": f"sum by (collection) ({rate(metric, COLLECTION)})"
                for metric in failures
            },
        ),
        *_watching(),
        durations("Time to estimate", "Does estimation keep up with the windows?", workers.ESTIMATE),
        durations("Time to grow", "Do looks for frequent texts keep up with the windows?", workers.GROWING),
        durations("Time to store", "Does Kafka store counts in time?", workers.CHECKPOINT),
    )


def _watching() -> Panels:
    began = largest("collection", workers.ESTIMATE_WINDOW_START, COLLECTION)
    length = largest("collection", workers.CANARY_WINDOW, COLLECTION)
    windows = f"sum by (collection, result) ({rate(workers.CANARY_WINDOWS, COLLECTION)})"
    return (
        lines(
            "Canaries",
            described(
                "Is the whole path still correct?",
                workers.CANARY_CHI_SQUARE,
                workers.CANARY_THRESHOLD,
            ),
            NUMBER,
            {
                f"{{{{collection}}}}: {each.name}": largest("collection", each, COLLECTION)
                for each in (workers.CANARY_CHI_SQUARE, workers.CANARY_THRESHOLD)
            },
        ),
        lines(
            "Windows of canaries",
            described("Were all windows right, including those between two scrapes?", workers.CANARY_WINDOWS),
            "suffix: windows/s",
            {"{{collection}}: {{result}}": windows},
        ),
        limited(
            lines(
                "Silence of canaries",
                described(
                    "Are canaries still sent? Time since the newest window began, as a share of "
                    f"{STILL_WINDOWS} windows and {STILL_SECONDS // 60} minutes.",
                    workers.CANARY_WINDOW,
                    workers.ESTIMATE_WINDOW_START,
                ),
                SHARE,
                {"{{collection}}": f"(time() - {began}) / ({STILL_WINDOWS} * {length} + {STILL_SECONDS})"},
            ),
            1,
        ),
    )
