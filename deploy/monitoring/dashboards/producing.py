"""Panels about producers' delivery."""

from deniable.deploy.monitoring.dashboards.frame import Panels
from deniable.deploy.monitoring.dashboards.panels import (
    BYTES,
    BYTES_PER_SECOND,
    COLLECTION,
    REPORTS_PER_SECOND,
    SECONDS,
    described,
    lines,
    rate,
    series,
)
from deniable.producers.metrics import definitions as producers


def producing() -> Panels:
    """Build the panels of producers' metrics."""
    acknowledged = rate(producers.REPORTS, 'result="acknowledged"')
    return (
        lines(
            "Reports of producers",
            described("Do reports of apps reach the broker in time?", producers.REPORTS),
            REPORTS_PER_SECOND,
            {"{{result}}": f"sum by (result) ({rate(producers.REPORTS, COLLECTION)})"},
        ),
        lines(
            "Reports refused",
            described(
                "Why do producers refuse reports, or edges reject what producers have stored?",
                producers.REFUSED,
                producers.REJECTED,
            ),
            REPORTS_PER_SECOND,
            {
                "{{reason}}": f"sum by (reason) ({rate(producers.REFUSED, COLLECTION)})",
                "{{reason}}, by the edge": f"sum by (reason) ({rate(producers.REJECTED, COLLECTION)})",
            },
        ),
        lines(
            "Reports in a pack",
            described(
                "Are packs large enough? Packs of all collections. A small one costs workers as much as a "
                "large one: raise `pack_seconds`.",
                producers.PACKS,
            ),
            "suffix: reports",
            {"acknowledged": f"sum({acknowledged}) / sum({rate(producers.PACKS)})"},
        ),
        lines(
            "Largest outbox",
            described("Will reports be dropped?", producers.OUTBOX_BYTES),
            BYTES,
            {"of one producer": f"max({series(producers.OUTBOX_BYTES)})"},
        ),
        lines(
            "Oldest pack in an outbox",
            described("Will reports expire before they are sent?", producers.OUTBOX_AGE),
            SECONDS,
            {"of all producers": f"max({series(producers.OUTBOX_AGE)})"},
        ),
        lines(
            "Packs that wait",
            described(
                "Do packs wait, or can they never be sent?",
                producers.OUTBOX_PACKS,
                producers.OUTBOX_UNSENDABLE,
            ),
            "suffix: packs",
            {
                "in outboxes": f"sum({series(producers.OUTBOX_PACKS)})",
                "unsendable": f"sum({series(producers.OUTBOX_UNSENDABLE)})",
            },
        ),
        lines(
            "Producers with other parameters",
            described(
                "Do workers reject a collection's reports for its parameters?", producers.PARAMETERS_DIFFER
            ),
            "suffix: producers",
            {"{{collection}}": f"sum by (collection) ({series(producers.PARAMETERS_DIFFER, COLLECTION)})"},
        ),
        lines(
            "Producers without their budget store",
            described("Do reports of clients wait, or get dropped?", producers.BUDGET_STORE_AWAY),
            "suffix: producers",
            {"all producers": f"sum({series(producers.BUDGET_STORE_AWAY)})"},
        ),
        lines(
            "Sent",
            described("How much network traffic do producers cause?", producers.SENT_BYTES),
            BYTES_PER_SECOND,
            {"all producers": f"sum({rate(producers.SENT_BYTES)})"},
        ),
    )
