"""Panels about relays: how far they are, what they reject, how many reports they shuffle together."""

from deniable.deploy.monitoring.dashboards.frame import Panels
from deniable.deploy.monitoring.dashboards.panels import (
    COLLECTION,
    NATS,
    NUMBER,
    PACKS_PER_SECOND,
    RECORDS,
    REPORTS_PER_SECOND,
    SECONDS,
    described,
    largest,
    limited,
    lines,
    rate,
    series,
)
from deniable.relay.service import definitions as relays


def relaying() -> Panels:
    """Build the panels of relays' progress and rejections."""
    return (
        limited(
            lines(
                "Relays that Kafka does not answer",
                described("Do uploads wait in `uploads`, because Kafka is away?", relays.AWAY),
                "suffix: relays",
                {"of all": f"sum({series(relays.AWAY)})"},
            ),
            1,
        ),
        lines(
            "Relays and partitions",
            "Is every partition of `uploads` read? Relays that are scraped, and partitions that they read.",
            NUMBER,
            {
                "relays": f"count({series(relays.AWAY)})",
                "partitions read": f"count(count by (partition) ({series(relays.LAG)}))",
            },
        ),
        lines(
            "Lag of relays",
            described("Do relays keep up?", relays.LAG),
            RECORDS,
            {"partition {{partition}}": largest("partition", relays.LAG)},
        ),
        lines(
            "Age of the newest upload read",
            described("How old is the newest upload read? It ages while nobody uploads.", relays.WATERMARK),
            SECONDS,
            {"partition {{partition}}": f"time() - {largest('partition', relays.WATERMARK)}"},
        ),
        lines(
            "Uploads and batches",
            described("How many uploads are read, in how many batches?", relays.UPLOADS, relays.BATCHES),
            "suffix: /s",
            {"uploads": f"sum({rate(relays.UPLOADS)})", "batches": f"sum({rate(relays.BATCHES)})"},
        ),
        lines(
            "Reports relayed",
            described("Are uploaded reports accepted?", relays.REPORTS),
            REPORTS_PER_SECOND,
            {"{{result}}": f"sum by (result) ({rate(relays.REPORTS, COLLECTION)})"},
        ),
        lines(
            "Uploaded reports rejected",
            described("Why are uploaded reports rejected?", relays.REJECTED),
            REPORTS_PER_SECOND,
            {"{{reason}}": f"sum by (reason) ({rate(relays.REJECTED)})"},
        ),
        lines(
            "Uploaded groups rejected",
            described("Why are groups of uploads rejected?", relays.REJECTED_GROUPS),
            "suffix: groups/s",
            {"{{reason}}": f"sum by (reason) ({rate(relays.REJECTED_GROUPS)})"},
        ),
        lines(
            "Partitions of uploads opened",
            described("Do relays lose partitions, or records?", relays.OPENINGS, relays.LOSSES),
            "suffix:/s",
            {"opened": f"sum({rate(relays.OPENINGS)})", "with losses": f"sum({rate(relays.LOSSES)})"},
        ),
    )


def shuffling() -> Panels:
    """Build the panels of what relays hold back, shuffle and send."""
    sizes = f"sum by (collection, le) ({rate(relays.SHUFFLED, COLLECTION)})"
    least = f"min by (collection) ({series(relays.SHUFFLED_LEAST, COLLECTION)})"
    held = f"sum by (collection) ({series(relays.HELD, COLLECTION)})"
    return (
        lines(
            "Reports shuffled together",
            described(
                "Among how many others is a report hidden from readers of `reports`? Median of the times "
                "that reports left.",
                relays.SHUFFLED,
            ),
            "suffix: reports",
            {"{{collection}}": f"histogram_quantile(0.5, {sizes})"},
        ),
        lines(
            "Fewest reports shuffled together",
            described("What is the smallest number, which any claim must go by?", relays.SHUFFLED_LEAST),
            "suffix: reports",
            {"{{collection}}": least},
        ),
        lines(
            "Epsilon of shuffled reports",
            described("What does a report cost against readers of `reports`?", relays.EPSILON_SHUFFLED),
            NATS,
            {"{{collection}}": f"max by (collection) ({series(relays.EPSILON_SHUFFLED, COLLECTION)})"},
        ),
        lines(
            "Reports held back",
            described("How many reports wait for others?", relays.HELD),
            "suffix: reports",
            {"{{collection}}": held},
        ),
        lines(
            "Packs of relays",
            described("How many packs do workers get?", relays.PACKS),
            PACKS_PER_SECOND,
            {"all relays": f"sum({rate(relays.PACKS)})"},
        ),
        lines(
            "Reports in a pack of relays",
            described("Are packs large enough?", relays.PACKED, relays.PACKS),
            "suffix: reports",
            {"all relays": f"sum({rate(relays.PACKED)}) / sum({rate(relays.PACKS)})"},
        ),
        lines(
            "Upload ids in memory",
            described("Does a relay's memory fill?", relays.IDS),
            "suffix: ids",
            {"of one relay": f"max({series(relays.IDS)})"},
        ),
        lines(
            "Open windows",
            described("How many windows take uploads?", relays.WINDOWS),
            "suffix: windows",
            {"{{collection}}": f"sum by (collection) ({series(relays.WINDOWS, COLLECTION)})"},
        ),
        lines(
            "Records to read again",
            described("How long would a relay take that opens a partition now?", relays.REWIND),
            RECORDS,
            {"partition {{partition}}": largest("partition", relays.REWIND)},
        ),
    )
