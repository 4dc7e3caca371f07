"""Whether reports are counted, windows become final and producers get rid of what they hold."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from aggregator import catalogue as workers
from deploy.dashboards.frame import Panels, framed, some_collections
from deploy.dashboards.panels import (
    COLLECTION,
    NUMBER,
    PACKS_PER_SECOND,
    RECORDS,
    REPORTS_PER_SECOND,
    SECONDS,
    SHARE,
    durations,
    limited,
    lines,
    rate,
    told,
)
from deploy.dashboards.producing import producing


def health() -> Dashboard:
    """The dashboard for who runs it."""
    return framed(
        "deniable-health",
        "deniable: pipeline health",
        "Are reports counted, do windows become final, do producers get rid of what they hold?",
        [some_collections()],
        {
            "Counting": _counting(),
            "Reports and packs": _accepting(),
            "Windows and estimates": _estimating(),
            "Producers": producing(),
        },
    )


def _counting() -> Panels:
    owned = f"count(count by (partition) ({workers.POSITION.exposed}))"
    stalled = f"max by (partition) ({workers.STALLED.exposed})"
    return (
        lines(
            "Workers and partitions",
            "Is every partition owned? Workers that tell of themselves, and partitions that they count. With "
            "fewer than `reports` has, records wait: start workers, or see their `/readyz`.",
            NUMBER,
            {"workers": f"count({workers.RESYNCS.exposed})", "partitions owned": owned},
        ),
        limited(
            lines(
                "Stalled partitions",
                told("Does any partition stand still?", workers.STALLED),
                NUMBER,
                {"partition {{partition}}": stalled},
            ),
            1,
        ),
        lines(
            "Lag",
            told("Does counting keep up?", workers.LAG),
            RECORDS,
            {"partition {{partition}}": f"max by (partition) ({workers.LAG.exposed})"},
        ),
        lines(
            "Age of what was counted last",
            told("How old is the newest record counted? It ages where nobody reports.", workers.WATERMARK),
            SECONDS,
            {"partition {{partition}}": f"time() - max by (partition) ({workers.WATERMARK.exposed})"},
        ),
        lines(
            "Ledgers opened again",
            told("Do workers lose what they own? Ledgers a second.", workers.RESYNCS),
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
            told("How many reports arrive, and are they counted?", workers.REPORTS),
            REPORTS_PER_SECOND,
            {"{{result}}": f"sum by (result) ({rate(workers.REPORTS, COLLECTION)})"},
        ),
        lines(
            "Rejected share of packs",
            told("Is more turned away than usual? Of the packs of all collections.", workers.PACKS),
            SHARE,
            {"rejected": f"sum({rejected}) / sum({all_packs})"},
        ),
        lines(
            "Packs rejected",
            told("Why are packs turned away? Those of all collections.", workers.PACKS_REJECTED),
            PACKS_PER_SECOND,
            {"{{reason}}": f"sum by (reason) ({rate(workers.PACKS_REJECTED)})"},
        ),
    )


def _estimating() -> Panels:
    windows = f"max by (collection, state) ({workers.WINDOWS.exposed}{{{COLLECTION}}})"
    late = f'max by (collection) ({workers.WINDOWS.exposed}{{{COLLECTION}, state="late"}})'
    failures = (workers.ESTIMATE_FAILURES, workers.WINDOWS_LOST, workers.FINALS_REVISED)
    return (
        lines(
            "Windows",
            told("Do windows become final?", workers.WINDOWS),
            NUMBER,
            {"{{state}}": f"sum by (state) ({windows})"},
        ),
        limited(
            lines(
                "Late windows",
                told("Which collections wait for answers that are due?", workers.WINDOWS),
                NUMBER,
                {"{{collection}}": late},
            ),
            1,
        ),
        lines(
            "What went wrong with windows",
            told("Are there windows without an estimate, or with a second final one?", *failures),
            "suffix: windows/s",
            {
                f"{{{{collection}}}}: {metric.name}": f"sum by (collection) ({rate(metric, COLLECTION)})"
                for metric in failures
            },
        ),
        lines(
            "Canaries",
            told(
                "Does the whole path still answer rightly?",
                workers.CANARY_CHI_SQUARE,
                workers.CANARY_THRESHOLD,
            ),
            NUMBER,
            {
                f"{{{{collection}}}}: {each.name}": f"max by (collection) ({each.exposed}{{{COLLECTION}}})"
                for each in (workers.CANARY_CHI_SQUARE, workers.CANARY_THRESHOLD)
            },
        ),
        durations("Time to estimate", "Does estimating keep up with the windows?", workers.ESTIMATE),
        durations("Time to store", "Does Kafka store counts in time?", workers.CHECKPOINT),
    )
